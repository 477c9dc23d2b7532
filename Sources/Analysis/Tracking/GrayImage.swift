// SPDX-License-Identifier: Apache-2.0

/// A part of an image with one number per pixel.
struct GrayImage {
  let width: Int
  let height: Int
  var values: [Float]

  init(width: Int, height: Int, values: [Float]) {
    (self.width, self.height, self.values) = (width, height, values)
  }

  /// Copies a rectangle of an image of bytes; nil if the rectangle is not inside the image.
  init?(_ image: UprightFrames.Image, x: Int, y: Int, width: Int, height: Int) {
    guard x >= 0, y >= 0, width > 0, height > 0, x + width <= image.width,
      y + height <= image.height
    else { return nil }
    (self.width, self.height) = (width, height)
    values = [Float](unsafeUninitializedCapacity: width * height) { target, count in
      for row in 0..<height {
        for column in 0..<width {
          target.initializeElement(
            at: row * width + column,
            to: Float(image.bytes[(y + row) * image.width + x + column]))
        }
      }
      count = width * height
    }
  }

  /// Returns the means of blocks of `factor` by `factor` pixels; incomplete blocks at the edges are
  /// left out.
  func reduced(by factor: Int) -> GrayImage {
    guard factor > 1 else { return self }
    let (columns, rows) = (width / factor, height / factor)
    var sums = [Float](repeating: 0, count: columns * rows)
    for y in 0..<rows * factor {
      for x in 0..<columns * factor {
        sums[y / factor * columns + x / factor] += values[y * width + x]
      }
    }
    let share = 1 / Float(factor * factor)
    return GrayImage(width: columns, height: rows, values: sums.map { $0 * share })
  }

  /// The normalized cross-correlation with a template at each offset, row by row.
  ///
  /// The values are from -1 to 1, and zero where the image is uniform.
  func correlation(with template: GrayImage) -> GrayImage {
    let (columns, rows) = (width - template.width + 1, height - template.height + 1)
    guard columns > 0, rows > 0 else { return GrayImage(width: 0, height: 0, values: []) }
    let count = Float(template.values.count)
    let mean = template.values.reduce(0, +) / count
    let centered = template.values.map { $0 - mean }
    let power = centered.reduce(0) { $0 + $1 * $1 }
    var result = [Float](repeating: 0, count: columns * rows)
    guard power > 0 else { return GrayImage(width: columns, height: rows, values: result) }
    values.withUnsafeBufferPointer { values in
      centered.withUnsafeBufferPointer { centered in
        for y in 0..<rows {
          for x in 0..<columns {
            var (sum, squares, product): (Float, Float, Float) = (0, 0, 0)
            for row in 0..<template.height {
              let (line, own) = ((y + row) * width + x, row * template.width)
              for column in 0..<template.width {
                let value = values[line + column]
                sum += value
                squares += value * value
                product += value * centered[own + column]
              }
            }
            // Rounding errors of the sums make the variance of a uniform image slightly above zero.
            let variance = squares - sum * sum / count
            guard variance > squares * 1e-5 else { continue }
            result[y * columns + x] = product / (variance * power).squareRoot()
          }
        }
      }
    }
    return GrayImage(width: columns, height: rows, values: result)
  }

  /// Returns the value between pixels, by cubic convolution; x and y are distances from the center
  /// of the first pixel.
  func interpolated(x: Double, y: Double) -> Double {
    let (column, row) = (x.rounded(.down), y.rounded(.down))
    let (across, down) = (Self.weights(x - column), Self.weights(y - row))
    var sum = 0.0
    for j in 0..<4 {
      let line = min(height - 1, max(0, Int(row) + j - 1)) * width
      var part = 0.0
      for i in 0..<4 {
        part += across[i] * Double(values[line + min(width - 1, max(0, Int(column) + i - 1))])
      }
      sum += down[j] * part
    }
    return sum
  }

  private static func weights(_ t: Double) -> SIMD4<Double> {
    let (t2, t3) = (t * t, t * t * t)
    return SIMD4(
      -0.5 * t + t2 - 0.5 * t3, 1 - 2.5 * t2 + 1.5 * t3, 0.5 * t + 2 * t2 - 1.5 * t3,
      -0.5 * t2 + 0.5 * t3)
  }
}
