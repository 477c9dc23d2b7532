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
  /// The property by which the object was recognized.
  public let method: ObjectTracker.Method
  /// The marked object in the first frame.
  public let box: PixelBox
  /// One point for each frame from the first one, also for frames in which the object is lost.
  public let points: [TrackedPoint]

  /// Frames in which the object was lost.
  public struct LostFrames: Hashable, Sendable, Codable {
    /// The index of the first frame in which the object was lost.
    public let firstIndex: Int
    /// The index of the last frame in which the object was lost.
    public let lastIndex: Int
    /// The presentation time of the first frame in which the object was lost.
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
  /// The speed is the slope of a parabola through up to five points, two before and two after. The
  /// first and the last point have no speed. The uncertainty is that of the positions, or their
  /// scatter around the parabolas where that is larger. Thus an acceleration does not increase the
  /// uncertainty, but a bounce does in the few frames around it.
  ///
  /// In a track without five known positions in a row, straight lines through three positions are
  /// used instead. An acceleration then increases the uncertainty.
  ///
  /// - Parameter timeScale: Seconds of real time per second of the movie: 1/8 for a movie that
  ///   shows 240 frames per second at 30.
  /// - Returns: One speed, or nil, for each point.
  public func speeds(timeScale: Rational = .one) -> [MeasuredValue?] {
    let scale = timeScale.isValid && timeScale > .zero ? timeScale.doubleValue : 1
    let motions = points.indices.map { LocalMotion(in: self, at: $0, timeScale: scale) }
    let scatter = LocalMotion.Scatter(of: motions.compactMap(\.self))
    return motions.map { $0?.speed(scatter) }
  }
}
