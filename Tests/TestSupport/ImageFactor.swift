// SPDX-License-Identifier: Apache-2.0

/// Measures the magnification of an image against the original by comparing their pixels.
package struct ImageFactor {
  private let original: [UInt8]
  private let width: Int
  private let height: Int
  /// The rows of the original that the comparison may use.
  private let rows: Range<Int>

  /// Prepares to compare images with an original in 8-bit gray.
  ///
  /// Only `rows` of the original are compared.
  package init(_ original: [UInt8], width: Int, height: Int, rows: Range<Int>) {
    (self.original, self.width, self.height, self.rows) = (original, width, height, rows)
  }

  /// The factor by which an image of the same size enlarges the middle of the original.
  ///
  /// All factors up to `limit` are tried. The first pass compares few pixels in steps of 0.5 %. The
  /// best factors are then refined with more pixels, smaller steps, and a center that may be off by
  /// a pixel.
  package func read(_ image: [UInt8], upTo limit: Double) -> Double {
    var coarse: [(factor: Double, error: Double)] = []
    var factor = 0.97
    while factor < limit * 1.03 {
      coarse.append((factor, error(of: image, factor, (0, 0), columns: 32, rows: 20)))
      factor *= 1.005
    }
    let best = coarse.sorted { $0.error < $1.error }.prefix(3)
    let fine = best.map { refine($0.factor, image) }.min { $0.error < $1.error }
    return fine?.factor ?? .nan
  }

  private func refine(_ start: Double, _ image: [UInt8]) -> (factor: Double, error: Double) {
    var best = (factor: start, x: 0.0, y: 0.0, error: Double.infinity)
    func evaluate(_ factor: Double, _ x: Double, _ y: Double) {
      let error = error(of: image, factor, (x, y), columns: 72, rows: 44)
      if error < best.error { best = (factor, x, y, error) }
    }
    for (step, shift) in [(0.002, 0.5), (0.001, 0.5), (0.000_4, 0.25), (0.000_2, 0.25)] {
      // Factor and center are refined alternately, since each affects the other.
      for _ in 0..<2 {
        let (factor, x, y) = (best.factor, best.x, best.y)
        for offset in -4...4 { evaluate(factor * (1 + Double(offset) * step), x, y) }
        for offset in -2...2 { evaluate(best.factor, x + Double(offset) * shift, y) }
        for offset in -2...2 { evaluate(best.factor, best.x, y + Double(offset) * shift) }
      }
    }
    return (best.factor, best.error)
  }

  /// One minus the squared correlation of the image with the original, which is enlarged by a
  /// factor.
  ///
  /// The range of the luma does not matter.
  private func error(
    of image: [UInt8], _ factor: Double, _ center: (x: Double, y: Double), columns: Int, rows: Int
  ) -> Double {
    let middle = (x: Double(width) / 2, y: Double(height) / 2)
    var (count, sumP, sumQ, sumPP, sumQQ, sumPQ) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    original.withUnsafeBufferPointer { original in
      image.withUnsafeBufferPointer { image in
        for row in 0..<rows {
          let y = (2 * row + 1) * height / (2 * rows)
          let v = (Double(y) + 0.5 - center.y - middle.y) / factor + middle.y - 0.5
          let top = Int(v.rounded(.down))
          guard top >= self.rows.lowerBound, top + 1 < self.rows.upperBound else { continue }
          for column in 0..<columns {
            let x = (2 * column + 1) * width / (2 * columns)
            let u = (Double(x) + 0.5 - center.x - middle.x) / factor + middle.x - 0.5
            let left = Int(u.rounded(.down))
            guard left >= 0, left + 1 < width else { continue }
            let (a, b) = (u - Double(left), v - Double(top))
            let first = top * width + left
            let above = Double(original[first]) * (1 - a) + Double(original[first + 1]) * a
            let below =
              Double(original[first + width]) * (1 - a) + Double(original[first + width + 1]) * a
            let (p, q) = (above * (1 - b) + below * b, Double(image[y * width + x]))
            (sumP, sumQ, count) = (sumP + p, sumQ + q, count + 1)
            (sumPP, sumQQ, sumPQ) = (sumPP + p * p, sumQQ + q * q, sumPQ + p * q)
          }
        }
      }
    }
    guard count > 50 else { return .infinity }
    let covariance = sumPQ - sumP * sumQ / count
    let variances = (sumPP - sumP * sumP / count) * (sumQQ - sumQ * sumQ / count)
    return variances > 0 ? 1 - covariance * covariance / variances : .infinity
  }
}
