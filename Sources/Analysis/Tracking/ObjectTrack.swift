// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The position of a tracked object in one frame.
public struct TrackedPoint: Hashable, Sendable, Codable {
  /// The index of the frame, from 0.
  public let index: Int
  /// The presentation time of the frame.
  public let time: MediaTime
  /// The center of the object in pixels of the frame as it is displayed; nil if it is lost.
  public let position: ImagePoint?
  /// Half the width of the interval of each coordinate that contains the true value with a
  /// probability of at least 95 %, in pixels; nil if the object is lost.
  ///
  /// It covers noise, and not a change of the object's shape.
  public let uncertainty: Double?
  /// The agreement with the marked object, from 0 to 1.
  public let score: Double
  /// Whether the object counts as lost because a second position matched about as well.
  public let isAmbiguous: Bool
}

/// The path of a tracked object.
public struct ObjectTrack: Hashable, Sendable, Codable {
  /// The property by which the object was found.
  public let method: ObjectTracker.Method
  /// The marked object in the first frame.
  public let box: PixelBox
  /// One point for each frame from the first on, also for frames in which the object is lost.
  public let points: [TrackedPoint]

  /// Frames in which the object was lost.
  public struct LostFrames: Hashable, Sendable, Codable {
    /// The index of the first of these frames.
    public let firstIndex: Int
    /// The index of the last of these frames.
    public let lastIndex: Int
    /// The presentation time of the first of these frames.
    public let time: MediaTime
  }

  /// The runs of frames in which the object was lost, in order.
  public var lost: [LostFrames] {
    var runs: [LostFrames] = []
    for point in points where point.position == nil {
      if let last = runs.last, last.lastIndex == point.index - 1 {
        runs[runs.count - 1] = LostFrames(
          firstIndex: last.firstIndex, lastIndex: point.index, time: last.time)
      } else {
        runs.append(
          LostFrames(firstIndex: point.index, lastIndex: point.index, time: point.time))
      }
    }
    return runs
  }

  /// The speed at each point in pixels per second of real time, or nil where too few neighbors are
  /// known.
  ///
  /// The speed is the slope of a line through up to five points, two before and two after. The first
  /// and the last point have none. Points that scatter more than their uncertainty increase that of the speed.
  ///
  /// - Parameter timeScale: Seconds of real time per second of the movie: 1/8 for a movie that
  ///   shows 240 frames per second at 30.
  /// - Returns: One speed, or nil, for each point.
  public func speeds(timeScale: Rational = .one) -> [MeasuredValue?] {
    let scale = timeScale.isValid && timeScale > .zero ? timeScale.doubleValue : 1
    let slopes = points.indices.map { slope(at: $0, scale) }
    // How much more points scatter than their uncertainty says, over the whole track.
    let known = slopes.compactMap(\.self)
    let scatter = known.reduce(0) { $0 + $1.scatter }
    let freedom = known.reduce(0) { $0 + $1.freedom }
    let excess = freedom > 0 ? max(1, (scatter / Double(freedom)).squareRoot()) : 1
    return slopes.map { slope in
      slope.map {
        MeasuredValue(
          ($0.x * $0.x + $0.y * $0.y).squareRoot(), uncertainty: $0.uncertainty * excess)
      }
    }
  }

  private struct Slope {
    var x = 0.0
    var y = 0.0
    var uncertainty = 0.0
    /// The sum of squared distances from the lines, each relative to its standard deviation.
    var scatter = 0.0
    var freedom = 0
  }

  private func slope(at center: Int, _ timeScale: Double) -> Slope? {
    guard points[center].position != nil else { return nil }
    // Only pairs on both sides: with an acceleration, other points would move the slope.
    let indices = [-2, -1, 0, 1, 2].map { center + $0 }.filter { index in
      [index, 2 * center - index].allSatisfy {
        points.indices.contains($0) && points[$0].position != nil
      }
    }
    let near = indices.compactMap { index -> (time: Double, at: ImagePoint, deviation: Double)? in
      guard let position = points[index].position, let uncertainty = points[index].uncertainty
      else { return nil }
      let time = (points[index].time - points[center].time).doubleValue * timeScale
      return (time, position, uncertainty / ConfidenceInterval.factor)
    }
    guard near.count >= 3 else { return nil }
    let count = Double(near.count)
    let time = near.reduce(0) { $0 + $1.time } / count
    let x = near.reduce(0) { $0 + $1.at.x } / count
    let y = near.reduce(0) { $0 + $1.at.y } / count
    let spread = near.reduce(0) { $0 + ($1.time - time) * ($1.time - time) }
    guard spread > 0 else { return nil }
    var slope = Slope()
    slope.x = near.reduce(0) { $0 + ($1.time - time) * ($1.at.x - x) } / spread
    slope.y = near.reduce(0) { $0 + ($1.time - time) * ($1.at.y - y) } / spread
    let variance = near.reduce(0) { $0 + $1.deviation * $1.deviation } / count
    slope.uncertainty = ConfidenceInterval.factor * (variance / spread).squareRoot()
    slope.freedom = 2 * (near.count - 2)
    for point in near {
      let right = point.at.x - x - slope.x * (point.time - time)
      let down = point.at.y - y - slope.y * (point.time - time)
      slope.scatter += (right * right + down * down) / max(variance, 1e-12)
    }
    return slope
  }
}
