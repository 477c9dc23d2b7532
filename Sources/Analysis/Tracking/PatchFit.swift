// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The least-squares fit of a patch: template = gain · image + slopes · step + constant.
struct PatchFit {
  /// The coefficients of the fit: gain, gain times the two steps, and the constant.
  private let solution: SIMD4<Double>
  private let inverse: [SIMD4<Double>]
  /// The variance of the noise, increased if adjacent pixels share noise.
  private let variance: Double
  /// The correlation of the fit with the template, from 0 to 1.
  let correlation: Double

  /// Fits a template; nil for an image without structure.
  ///
  /// Each element of `terms` belongs to a pixel of the template: the image's value, its slopes
  /// across and down, and 1.
  init?(_ template: GrayImage, _ terms: [SIMD4<Double>]) {
    var matrix = [SIMD4<Double>](repeating: .zero, count: 4)
    var right = SIMD4<Double>.zero
    for (wanted, term) in zip(template.values, terms) {
      for index in 0..<4 { matrix[index] += term[index] * term }
      right += Double(wanted) * term
    }
    guard let inverse = Self.inverted(matrix) else { return nil }
    var solution = SIMD4<Double>.zero
    for index in 0..<4 { solution[index] = (inverse[index] * right).sum() }
    (self.inverse, self.solution) = (inverse, solution)
    let residuals = zip(template.values, terms).map { Double($0) - ($1 * solution).sum() }
    let rest = residuals.reduce(0) { $0 + $1 * $1 }
    let mean = Double(template.values.reduce(0, +)) / Double(template.values.count)
    let power = template.values.reduce(0) { $0 + (Double($1) - mean) * (Double($1) - mean) }
    correlation = power > 0 ? max(0, 1 - rest / power).squareRoot() : 0
    var (across, down) = (0.0, 0.0)
    for index in residuals.indices {
      if index % template.width > 0 { across += residuals[index] * residuals[index - 1] }
      if index >= template.width { down += residuals[index] * residuals[index - template.width] }
    }
    // Interpolation and compression correlate the noise of adjacent pixels, which then give less
    // information.
    let spread =
      rest > 0 ? (1 + 2 * max(0, across / rest)) * (1 + 2 * max(0, down / rest)) : 1
    variance = rest / Double(max(1, residuals.count - 4)) * spread
  }

  /// Inverts a matrix by Gauss-Jordan elimination with pivots.
  private static func inverted(_ matrix: [SIMD4<Double>]) -> [SIMD4<Double>]? {
    var left = matrix
    var result = (0..<4).map { index -> SIMD4<Double> in
      var unit = SIMD4<Double>.zero
      unit[index] = 1
      return unit
    }
    for column in 0..<4 {
      let pivot = (column..<4).max { abs(left[$0][column]) < abs(left[$1][column]) } ?? column
      guard abs(left[pivot][column]) > max(1e-9, matrix[column][column] * 1e-12) else {
        return nil
      }
      left.swapAt(column, pivot)
      result.swapAt(column, pivot)
      let factor = 1 / left[column][column]
      left[column] *= factor
      result[column] *= factor
      for row in 0..<4 where row != column {
        let share = left[row][column]
        left[row] -= share * left[column]
        result[row] -= share * result[column]
      }
    }
    return result
  }

  /// The step in pixels from the image to the best match; nil if the image does not resemble the
  /// template.
  var step: (right: Double, down: Double)? {
    guard solution[0] > 0.05 else { return nil }
    let (right, down) = (solution[1] / solution[0], solution[2] / solution[0])
    guard right.isFinite, down.isFinite, hypot(right, down) < 2 else { return nil }
    return (right, down)
  }

  /// The standard deviation of a coordinate, in the worse direction.
  ///
  /// Nil if the structure fixes the position in one direction only, as a straight line does.
  var deviation: Double? {
    let (a, b, c) = (inverse[1][1], inverse[2][2], inverse[1][2])
    // The eigenvalues of the covariance matrix of the position are `middle - half` and `middle +
    // half`.
    let (middle, half) = ((a + b) / 2, hypot((a - b) / 2, c))
    guard solution[0] > 0, middle - half > (middle + half) / 400 else { return nil }
    let deviation = (variance * (middle + half)).squareRoot() / solution[0]
    // The interpolation of sharp edges is off by about 0.015 pixels, even without noise.
    return deviation.isFinite ? hypot(deviation, 0.015) : nil
  }
}
