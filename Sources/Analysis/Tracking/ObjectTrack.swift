// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore
public import OvercrankRaster

/// The position of a tracked object in one frame.
public struct TrackedPoint: Hashable, Sendable, Codable {
  /// The index of the frame, from 0.
  public let index: Int
  /// The presentation time of the frame.
  public let time: MediaTime
  /// The center of the object in pixels of the frame as it is displayed; nil if it is lost.
  public let position: Point?
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
  public let box: PixelRect
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
  /// A repeated frame has the speed of the frame that it repeats. At a cut, the motion of each part is
  /// measured by itself.
  ///
  /// - Parameter clock: The capture times of the movie.
  /// - Returns: One speed, or nil, for each point.
  public func speeds(_ clock: CaptureClock) -> [MeasuredValue?] { speeds(path(clock)) }

  /// The speed at each point in pixels per second, as ``speeds(_:)``, from the times of the points.
  ///
  /// - Parameter timeScale: Seconds of real time per second of these times.
  /// - Returns: One speed, or nil, for each point.
  public func speeds(timeScale: Rational = .one) -> [MeasuredValue?] { speeds(path(timeScale)) }

  /// The velocity at each point in pixels per second of real time, with y downward; nil where
  /// ``speeds(_:)`` has nil.
  ///
  /// - Parameter clock: The capture times of the movie.
  /// - Returns: One velocity, or nil, for each point.
  public func velocities(_ clock: CaptureClock) -> [ImageVelocity?] { velocities(path(clock)) }

  /// The velocity at each point in pixels per second, as ``velocities(_:)``, from the times of the
  /// points.
  ///
  /// - Parameter timeScale: Seconds of real time per second of these times.
  /// - Returns: One velocity, or nil, for each point.
  public func velocities(timeScale: Rational = .one) -> [ImageVelocity?] {
    velocities(path(timeScale))
  }

  /// Whether the object was found in no frame but the one in which it was marked, although there were
  /// others.
  public var isLostThroughout: Bool {
    guard let first = points.first else { return true }
    let others = points.dropFirst()
    return others.isEmpty ? first.position == nil : others.allSatisfy { $0.position == nil }
  }

  /// The points of the path whose frames show something new, with their times.
  private struct Path {
    /// The numbers of the points.
    let kept: [Int]
    /// One moment for each of them.
    let moments: [LocalMotion.Moment]
  }

  private func path(_ clock: CaptureClock) -> Path {
    let start = points.first.flatMap { clock.seconds(ofFrame: $0.index) } ?? .zero
    let parts = points.map { clock.part(ofFrame: $0.index) }
    let kept = points.indices.filter { number in
      number == 0 || parts[number] != parts[number - 1]
        || clock.map.frames[points[number].index].content != .repeated
    }
    return path(of: kept, parts) { point in
      // The difference is exact, so that a clock with a distant zero costs no digits.
      clock.seconds(ofFrame: point.index).map { ($0 - start).doubleValue } ?? 0
    }
  }

  private func path(_ timeScale: Rational) -> Path {
    let scale = timeScale.isValid && timeScale > .zero ? timeScale.doubleValue : 1
    let start = points.first?.time ?? .zero
    return path(of: Array(points.indices), points.map { _ in 0 }) {
      ($0.time - start).doubleValue * scale
    }
  }

  /// Collects the points with their times.
  ///
  /// - Parameters:
  ///   - kept: The numbers of the points whose frames show something new.
  ///   - parts: The part of each point; nil for one of unknown time.
  ///   - time: Returns the time of a point in seconds.
  /// - Returns: The path.
  private func path(
    of kept: [Int], _ parts: [Int?], _ time: (TrackedPoint) -> Double
  ) -> Path {
    let moments = kept.map { number -> LocalMotion.Moment in
      let point = points[number]
      return LocalMotion.Moment(
        time: time(point), part: parts[number] ?? -1,
        position: parts[number] == nil ? nil : point.position,
        deviation: point.uncertainty.map { $0 / ConfidenceInterval.factor })
    }
    return Path(kept: kept, moments: moments)
  }

  private func motions(_ path: Path) -> [LocalMotion?] {
    path.moments.indices.map { LocalMotion(path.moments, at: $0, method) }
  }

  private func speeds(_ path: Path) -> [MeasuredValue?] {
    let motions = motions(path)
    let scatter = LocalMotion.Scatter(of: motions.compactMap(\.self))
    return values(motions.map { $0?.speed(scatter) }, path)
  }

  private func velocities(_ path: Path) -> [ImageVelocity?] {
    values(motions(path).map { $0?.velocity }, path)
  }

  /// Returns the value of each point; that of a repeated frame is the value of the frame it repeats.
  private func values<Value>(_ values: [Value?], _ path: Path) -> [Value?] {
    var position = -1
    return points.indices.map { number in
      if position + 1 < path.kept.count, path.kept[position + 1] == number { position += 1 }
      return position >= 0 && points[number].position != nil ? values[position] : nil
    }
  }
}
