// SPDX-License-Identifier: Apache-2.0

/// A straight line through weighted points, fitted by least squares, with its uncertainty.
///
/// Points far from the line are left out.
struct WeightedLine {
  /// A point; `weight` is proportional to the inverse variance of `y`.
  struct Sample {
    let x: Double
    let y: Double
    let weight: Double
  }

  /// The points that the line was fitted to.
  private(set) var points: [Sample]
  private(set) var slope = 0.0
  private var center = (x: 0.0, y: 0.0)
  private var spread = 0.0
  private var totalWeight = 0.0
  /// The estimated variance of `y` for a point of weight 1.
  private var variance = 0.0

  /// Fits a line; nil for fewer than three points.
  init?(_ all: [Sample]) {
    points = all
    for _ in 0..<8 {
      guard points.count >= 3 else { return nil }
      fit()
      let distances = points.map { abs($0.y - value(at: $0.x)) * $0.weight.squareRoot() }
      // For a normal distribution, 1.4826 times the median distance is the standard deviation.
      let limit = 6 * 1.4826 * distances.sorted()[distances.count / 2]
      let near = zip(points, distances).filter { $0.1 <= limit }.map(\.0)
      guard near.count < points.count, near.count >= 3 else { break }
      points = near
    }
    fit()
  }

  private mutating func fit() {
    totalWeight = points.reduce(0) { $0 + $1.weight }
    let x = points.reduce(0) { $0 + $1.weight * $1.x } / totalWeight
    center = (x, points.reduce(0) { $0 + $1.weight * $1.y } / totalWeight)
    spread = points.reduce(0) { $0 + $1.weight * ($1.x - x) * ($1.x - x) }
    let rise = points.reduce(0) { $0 + $1.weight * ($1.x - x) * ($1.y - center.y) }
    slope = spread > 0 ? rise / spread : 0
    let squares = points.reduce(0) { sum, point in
      let distance = point.y - value(at: point.x)
      return sum + point.weight * distance * distance
    }
    variance = points.count > 2 ? squares / Double(points.count - 2) : 0
  }

  /// The y coordinate of the line.
  func value(at x: Double) -> Double { center.y + slope * (x - center.x) }

  /// Half the width of the confidence interval of ``value(at:)``.
  func uncertainty(at x: Double) -> Double {
    let lever = spread > 0 ? (x - center.x) * (x - center.x) / spread : 0
    return ConfidenceInterval.factor(freedom: points.count - 2)
      * (variance * (1 / totalWeight + lever)).squareRoot()
  }
}

/// The factors from standard deviations to the widths of all stated confidence intervals.
enum ConfidenceInterval {
  /// The factor for a known standard deviation: the normal distribution's quantile for 98.5 %.
  ///
  /// A model of errors is never exact, so the intervals are planned for more than the 95 % that
  /// they promise.
  static let factor = 2.4324

  /// The factor for the length of an error in a plane: the Rayleigh distribution's quantile for
  /// 98.5 %.
  static let planarFactor = 2.8982

  /// The factor for an estimated standard deviation: the quantile of Student's t-distribution,
  /// expanded in the inverse number of degrees of freedom.
  static func factor(freedom: Int) -> Double {
    let z = factor
    let n = Double(max(1, freedom))
    let first = (z * z * z + z) / (4 * n)
    let second = (5 * z * z * z * z * z + 16 * z * z * z + 3 * z) / (96 * n * n)
    return z + first + second
  }
}
