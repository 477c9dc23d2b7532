// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster

/// The motion at one point of a track: the slope of a least-squares parabola through its neighbors.
///
/// A parabola fits a constant acceleration exactly, so only errors of the positions count as
/// scatter.
struct LocalMotion {
  /// The slopes of the x and the y coordinate in pixels per second.
  private let right: Double
  private let down: Double
  /// The standard deviation of each slope, if the stated uncertainties of the positions are true.
  private let deviation: Double
  /// The mean squared distance of a coordinate from the parabola, relative to the stated variance
  /// of the positions; zero if ``freedom`` is zero.
  private let excess: Double
  /// The number of degrees of freedom of ``excess``.
  private let freedom: Int
  /// The equivalent of ``excess`` for a straight line through the inner three positions.
  ///
  /// It has ``bendFreedom`` degrees of freedom.
  private let bend: Double
  /// The equivalent of ``deviation`` for the slope of the straight line.
  private let bendDeviation: Double
  /// The factor from a squared acceleration to the increase of ``bend``, up to a constant that is
  /// the same for all points.
  private let bendScale: Double
  private static let bendFreedom = 2

  /// A point of a path with its capture time.
  struct Moment {
    /// The capture time in seconds.
    let time: Double
    /// The number of the part that the frame belongs to; times of other parts cannot be compared.
    let part: Int
    /// The center of the object; nil if it is lost.
    let position: Point?
    /// The standard deviation of each coordinate; nil if it is lost.
    let deviation: Double?
  }

  /// Fits the parabola; nil if fewer than three positions are known.
  init?(_ moments: [Moment], at center: Int, _ method: ObjectTracker.Method) {
    guard moments[center].position != nil else { return nil }
    func moment(_ index: Int) -> Moment? {
      moments.indices.contains(index) && moments[index].part == moments[center].part
        && moments[index].position != nil ? moments[index] : nil
    }
    // Only pairs on both sides: a change of the acceleration has less effect on their slope.
    let near = [-2, -1, 0, 1, 2].compactMap {
      offset -> (time: Double, at: Point, deviation: Double)? in
      guard moment(center - offset) != nil, let moment = moment(center + offset),
        let position = moment.position, let deviation = moment.deviation
      else { return nil }
      return (moment.time - moments[center].time, position, deviation)
    }
    guard near.count >= 3,
      let parabola = Parabola(times: near.map(\.time)),
      case let inner = near[(near.count / 2 - 1)...(near.count / 2 + 1)],
      let innerParabola = Parabola(times: inner.map(\.time))
    else { return nil }
    let (x, y) = (parabola.fit(near.map(\.at.x)), parabola.fit(near.map(\.at.y)))
    (right, down) = (x.slope, y.slope)
    // One half of a patch's variance is that of the marked object, which is the same in all frames.
    let share = method == .patch ? 0.5 : 1
    let variance = share * near.reduce(0) { $0 + $1.deviation * $1.deviation } / Double(near.count)
    deviation = (variance * parabola.slopeVariance).squareRoot()
    freedom = 2 * (near.count - 3)
    excess =
      freedom > 0 ? (x.squares + y.squares) / (Double(freedom) * max(variance, 1e-12)) : 0
    bend =
      (innerParabola.bend(inner.map(\.at.x)) + innerParabola.bend(inner.map(\.at.y)))
      / (Double(Self.bendFreedom) * max(variance, 1e-12))
    bendDeviation = (variance * innerParabola.slopeVariance).squareRoot()
    bendScale = innerParabola.bendScale
  }

  /// The ratio of ``excess`` to the scatter of the rest of the track above which a motion does not
  /// count as a parabola.
  ///
  /// Five positions with normally distributed errors exceed it once in 1 000 times.
  private static let outlierFactor = 4.6
  /// The median of ``excess`` for five positions with normally distributed errors.
  private static let normalMedian = 0.84
  /// The equivalents of ``outlierFactor`` and ``normalMedian`` for ``bend``.
  private static let bendOutlierFactor = 6.9
  private static let normalBendMedian = 0.69

  /// The variance of the positions over a whole track, relative to their stated variance.
  struct Scatter {
    /// The measured variance relative to the stated variance, for a moving object.
    ///
    /// It is at least 1, because slowly changing errors do not show as scatter.
    fileprivate var moving = 1.0
    /// The measured variance relative to the stated variance, for an object at rest.
    ///
    /// Slowly changing errors are constant then, so they need no allowance.
    fileprivate var still = 1.0

    /// The increase of ``bend`` by the usual acceleration in the track, per unit of ``bendScale``.
    fileprivate var acceleration = 0.0

    /// Measures the scatter, without points at which the motion changes abruptly.
    init(of motions: [LocalMotion]) {
      let known = motions.filter { $0.freedom > 0 }
      guard known.isEmpty else {
        measure(
          known.map { ($0.excess, $0.freedom) }, LocalMotion.normalMedian,
          LocalMotion.outlierFactor)
        let accelerations = known.map { ($0.bend - moving) / $0.bendScale }.sorted()
        acceleration = max(0, accelerations[accelerations.count / 2])
        return
      }
      // Here each parabola has only three positions, which it fits exactly. So the scatter is
      // measured by the distances from straight lines instead.
      measure(
        motions.map { ($0.bend, LocalMotion.bendFreedom) }, LocalMotion.normalBendMedian,
        LocalMotion.bendOutlierFactor, isShort: true)
    }

    /// Measures the scatter of motions, without those above the outlier limit.
    private mutating func measure(
      _ all: [(excess: Double, freedom: Int)], _ normalMedian: Double, _ outlierFactor: Double,
      isShort: Bool = false
    ) {
      let sorted = all.map(\.excess).sorted()
      guard !sorted.isEmpty else { return }
      let limit = max(1, sorted[sorted.count / 2] / normalMedian) * outlierFactor
      let steady = all.filter { $0.excess <= limit }
      let count = steady.reduce(0) { $0 + $1.freedom }
      guard count > 0 else { return }
      let freedom = Double(count)
      var mean = steady.reduce(0) { $0 + $1.excess * Double($1.freedom) } / freedom
      if isShort {
        // A variance from few positions is itself uncertain.
        let factor = ConfidenceInterval.factor(freedom: count) / ConfidenceInterval.factor
        mean *= factor * factor
      }
      moving = max(1, mean)
      // The stated variance counts as if it had been measured with four degrees of freedom. So it
      // counts more if the track has few degrees of freedom.
      still = max(mean, (4 + mean * freedom) / (4 + freedom))
    }
  }

  /// The velocity of the object in pixels per second.
  var velocity: ImageVelocity { ImageVelocity(x: right, y: down) }

  /// The speed of the object in pixels per second.
  func speed(_ scatter: Scatter) -> MeasuredValue {
    let value = (right * right + down * down).squareRoot()
    let expectedBend = scatter.moving + scatter.acceleration * bendScale
    let isOutlier =
      freedom > 0
      ? excess > scatter.moving * Self.outlierFactor : bend > expectedBend * Self.bendOutlierFactor
    if isOutlier {
      // A bounce between the inner positions is far from a line, but not as far from a parabola.
      // Both are computed, and the larger uncertainty counts.
      let line = ConfidenceInterval.factor(freedom: Self.bendFreedom) * bend.squareRoot()
      let parabola = ConfidenceInterval.factor(freedom: freedom) * excess.squareRoot()
      return MeasuredValue(
        value, uncertainty: max(line * bendDeviation, parabola * deviation))
    }
    let moving = deviation * scatter.moving.squareRoot()
    guard value <= 3 * moving else {
      return MeasuredValue(value, uncertainty: ConfidenceInterval.factor * moving)
    }
    // For an object near rest, position errors in any direction can only make the speed greater.
    let still = deviation * scatter.still.squareRoot()
    return MeasuredValue(value, uncertainty: ConfidenceInterval.planarFactor * still)
  }
}

/// Least-squares parabolas through values at fixed times, as sums of polynomials that are
/// orthogonal at these times.
private struct Parabola {
  /// The values of the orthogonal polynomials of first and second degree at the times.
  private let first: [Double]
  private let second: [Double]
  private let firstSquares: Double
  private let secondSquares: Double
  /// The slope of the second-degree polynomial at time 0.
  private let secondSlope: Double

  /// Nil if there are fewer than three different times.
  init?(times: [Double]) {
    let count = Double(times.count)
    let mean = times.reduce(0, +) / count
    let first = times.map { $0 - mean }
    let firstSquares = first.reduce(0) { $0 + $1 * $1 }
    guard firstSquares > 0 else { return nil }
    // Makes the square orthogonal to the constant and the linear polynomial.
    let squareMean = firstSquares / count
    let share = first.reduce(0) { $0 + $1 * $1 * $1 } / firstSquares
    let second = first.map { $0 * $0 - squareMean - share * $0 }
    let secondSquares = second.reduce(0) { $0 + $1 * $1 }
    guard secondSquares > 1e-12 * firstSquares * firstSquares else { return nil }
    (self.first, self.firstSquares) = (first, firstSquares)
    (self.second, self.secondSquares) = (second, secondSquares)
    secondSlope = -2 * mean - share
  }

  /// The variance of the slope at time 0 for values of variance 1.
  var slopeVariance: Double { 1 / firstSquares + secondSlope * secondSlope / secondSquares }

  /// The increase of ``bend(_:)`` for values whose second-degree coefficient is 1.
  var bendScale: Double { secondSquares }

  /// How much smaller the sum of squared distances is for the parabola than for a straight line.
  func bend(_ values: [Double]) -> Double {
    let square = zip(second, values).reduce(0) { $0 + $1.0 * $1.1 }
    return square * square / secondSquares
  }

  /// Returns the slope of the parabola at time 0, and the sum of squared distances from the values.
  func fit(_ values: [Double]) -> (slope: Double, squares: Double) {
    let mean = values.reduce(0, +) / Double(values.count)
    let linear = zip(first, values).reduce(0) { $0 + $1.0 * $1.1 } / firstSquares
    let square = zip(second, values).reduce(0) { $0 + $1.0 * $1.1 } / secondSquares
    let squares = values.indices.reduce(0) { sum, index in
      let distance = values[index] - mean - linear * first[index] - square * second[index]
      return sum + distance * distance
    }
    return (linear + square * secondSlope, squares)
  }
}
