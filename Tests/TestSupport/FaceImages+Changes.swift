// SPDX-License-Identifier: Apache-2.0

import Foundation

extension FaceImages.Image {
  /// Returns the image after a clockwise rotation, in a canvas that is large enough.
  ///
  /// The pixels at the edges of the image fill the rest of the canvas.
  package func rotated(byDegrees degrees: Double) -> Self {
    let (across, down) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
    let (x, y) = (Double(width) / 2, Double(height) / 2)
    let size = (
      Int(2 * (x * abs(across) + y * abs(down))), Int(2 * (x * abs(down) + y * abs(across)))
    )
    let center = (Double(size.0) / 2, Double(size.1) / 2)
    var rotated = resampled(width: size.0, height: size.1) { column, row in
      let (dx, dy) = (column - center.0, row - center.1)
      return (x + across * dx + down * dy, y - down * dx + across * dy)
    }
    rotated.faces = faces.map { face in
      var face = face
      let (dx, dy) = (face.left + face.width / 2 - x, face.top + face.height / 2 - y)
      face.left = center.0 + across * dx - down * dy - face.width / 2
      face.top = center.1 + down * dx + across * dy - face.height / 2
      face.roll += degrees
      return face
    }
    return rotated
  }

  /// Returns the image with another height.
  package func scaled(toHeight height: Int) -> Self {
    let scale = Double(height) / Double(self.height)
    let width = Int((Double(self.width) * scale).rounded())
    var scaled = resampled(width: width, height: height) { ($0 / scale, $1 / scale) }
    scaled.faces = faces.map { face in
      var face = face
      (face.left, face.top) = (face.left * scale, face.top * scale)
      (face.width, face.height) = (face.width * scale, face.height * scale)
      return face
    }
    return scaled
  }

  /// Returns the image with less light and with added noise.
  ///
  /// `noise` is the standard deviation in levels.
  package func degraded(light: Double, noise: Double, seed: UInt64) -> Self {
    var random = SeededGenerator(seed: seed)
    var degraded = self
    degraded.pixels = pixels.map { pixel in
      // The noise is the sum of three uniform distributions with a variance of 1/12 each.
      let sum = (0..<3).reduce(0.0) { total, _ in total + .random(in: -0.5...0.5, using: &random) }
      return UInt8(max(0, min(255, (light * Double(pixel) + 2 * noise * sum).rounded())))
    }
    return degraded
  }

  /// Returns an image of interpolated pixels, whose source positions a closure gives.
  private func resampled(
    width: Int, height: Int, _ source: (Double, Double) -> (x: Double, y: Double)
  ) -> Self {
    var result = self
    (result.width, result.height) = (width, height)
    result.pixels = [UInt8](unsafeUninitializedCapacity: width * height) { target, count in
      for row in 0..<height {
        for column in 0..<width {
          let point = source(Double(column) + 0.5, Double(row) + 0.5)
          let x = max(0, min(Double(self.width - 1), point.x - 0.5))
          let y = max(0, min(Double(self.height - 1), point.y - 0.5))
          let (left, top) = (Int(x), Int(y))
          let (right, bottom) = (min(left + 1, self.width - 1), min(top + 1, self.height - 1))
          func level(_ column: Int, _ row: Int) -> Double {
            Double(pixels[row * self.width + column])
          }
          let (byX, byY) = (x - Double(left), y - Double(top))
          let upper = level(left, top) * (1 - byX) + level(right, top) * byX
          let lower = level(left, bottom) * (1 - byX) + level(right, bottom) * byX
          target[row * width + column] = UInt8((upper * (1 - byY) + lower * byY).rounded())
        }
      }
      count = width * height
    }
    return result
  }
}
