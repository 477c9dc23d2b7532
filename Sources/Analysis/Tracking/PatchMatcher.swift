// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankRaster

/// A match of a tracked object in one frame.
struct ObjectMatch {
  /// The center.
  var position: Point
  /// The standard deviation of each coordinate of the position, in pixels.
  var deviation: Double
  /// The agreement with the object as it was marked, up to 1.
  var score: Double
  /// The agreement of the second-best match elsewhere; zero if there is none.
  var rival: Double
  /// The agreement with all that is known of the object's look, up to 1.
  var resemblance: Double
}

/// Finds a patch in other frames by normalized cross-correlation, then to a fraction of a pixel by
/// a least-squares fit.
struct PatchMatcher {
  let template: GrayImage
  private let factor: Int
  private let reduced: GrayImage

  init(_ template: GrayImage) {
    self.template = template
    // Reduces the patch for the coarse search, but keeps at least 8 pixels on its shorter side.
    factor = max(1, min(template.width, template.height) / 8)
    reduced = template.reduced(by: factor)
  }

  /// Searches an image around a position of the patch's center.
  ///
  /// - Returns: Nil if the search area is outside the image, or if nothing in it correlates.
  func match(in image: UprightFrames.Image, near center: Point, reach: Int) -> ObjectMatch? {
    let (width, height) = (template.width, template.height)
    let left = Int((center.x - Double(width) / 2).rounded()) - reach
    let top = Int((center.y - Double(height) / 2).rounded()) - reach
    let x = max(0, left)
    let y = max(0, top)
    let area = GrayImage(
      image, x: x, y: y, width: min(image.width, left + width + 2 * reach) - x,
      height: min(image.height, top + height + 2 * reach) - y)
    guard let area, area.width >= width, area.height >= height else { return nil }
    let found = candidates(in: area).map { candidate in refined(candidate, in: area) }
      .sorted { $0.score > $1.score }
    guard let best = found.first else { return nil }
    let apart = Double(min(width, height)) / 2
    let rival = found.first {
      hypot(Double($0.x - best.x), Double($0.y - best.y)) >= apart
    }
    guard var match = subpixel(best, in: area) else { return nil }
    match.score = max(match.score, Double(best.score))
    match.resemblance = match.score
    match.rival = Double(rival?.score ?? 0)
    match.position.x += Double(x)
    match.position.y += Double(y)
    return match
  }

  private struct Candidate {
    var x: Int
    var y: Int
    var score: Float
  }

  /// Returns the highest correlation peaks of the coarse search, with positions in pixels of the
  /// full-size area.
  private func candidates(in area: GrayImage) -> [Candidate] {
    let map = area.reduced(by: factor).correlation(with: reduced)
    guard !map.values.isEmpty else {
      return [Candidate(x: 0, y: 0, score: 0)]
    }
    var peaks: [Candidate] = []
    for y in 0..<map.height {
      for x in 0..<map.width {
        let value = map.values[y * map.width + x]
        guard value > 0.3 else { continue }
        var isPeak = true
        for j in max(0, y - 1)...min(map.height - 1, y + 1) {
          for i in max(0, x - 1)...min(map.width - 1, x + 1)
          where map.values[j * map.width + i] > value {
            isPeak = false
          }
        }
        if isPeak { peaks.append(Candidate(x: x * factor, y: y * factor, score: value)) }
      }
    }
    return Array(peaks.sorted { $0.score > $1.score }.prefix(6))
  }

  /// Returns the best whole-pixel match near a candidate.
  private func refined(_ candidate: Candidate, in area: GrayImage) -> Candidate {
    let x = max(0, candidate.x - factor)
    let y = max(0, candidate.y - factor)
    let right = min(area.width, candidate.x + factor + template.width + 1)
    let bottom = min(area.height, candidate.y + factor + template.height + 1)
    var part: [Float] = []
    part.reserveCapacity((right - x) * (bottom - y))
    for row in y..<bottom { part += area.values[row * area.width + x..<row * area.width + right] }
    let map = GrayImage(width: right - x, height: bottom - y, values: part)
      .correlation(with: template)
    guard let best = map.values.indices.max(by: { map.values[$0] < map.values[$1] }) else {
      return Candidate(x: x, y: y, score: 0)
    }
    return Candidate(x: x + best % map.width, y: y + best / map.width, score: map.values[best])
  }

  /// Moves a match to the position at which the squared difference is smallest.
  ///
  /// Brightness and contrast may differ. Nil if the patch has no structure that fixes a position.
  private func subpixel(_ start: Candidate, in area: GrayImage) -> ObjectMatch? {
    var (x, y) = (Double(start.x), Double(start.y))
    var last: PatchFit?
    for _ in 0..<10 {
      guard let next = fit(x, y, in: area), let (right, down) = next.step else { return nil }
      last = next
      x += right
      y += down
      guard hypot(x - Double(start.x), y - Double(start.y)) < 2 else { return nil }
      if hypot(right, down) < 1e-3 { break }
    }
    guard let last, let deviation = last.deviation else { return nil }
    return ObjectMatch(
      position: Point(
        x: x + Double(template.width) / 2, y: y + Double(template.height) / 2),
      deviation: deviation, score: last.correlation, rival: 0, resemblance: 0)
  }

  /// Fits the template as a sum of the image, its slopes across and down, and a constant.
  private func fit(_ x: Double, _ y: Double, in area: GrayImage) -> PatchFit? {
    let (width, height) = (template.width, template.height)
    let stride = width + 2
    let samples = (0..<stride * (height + 2)).map { index in
      area.interpolated(
        x: x + Double(index % stride - 1), y: y + Double(index / stride - 1))
    }
    let terms = template.values.indices.map { pixel -> SIMD4<Double> in
      let index = (pixel / width + 1) * stride + pixel % width + 1
      return SIMD4(
        samples[index], (samples[index + 1] - samples[index - 1]) / 2,
        (samples[index + stride] - samples[index - stride]) / 2, 1)
    }
    return PatchFit(template, terms)
  }
}

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
