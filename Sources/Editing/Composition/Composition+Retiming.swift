// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension Composition {
  /// A range of a source, and the speed at which it plays.
  public struct SpeedChange: Hashable, Sendable {
    /// In the time of the source.
    public let range: TimeRange
    /// The speed in it.
    public let speed: Speed

    /// Makes a change.
    public init(_ speed: Speed, in range: TimeRange) {
      self.range = range
      self.speed = speed
    }
  }

  /// Makes a composition that plays a whole source, some ranges of it at other speeds.
  ///
  /// What lies outside every range keeps speed 1.
  ///
  /// - Parameters:
  ///   - source: What is played.
  ///   - changes: In any order; their ranges may touch, but not overlap.
  /// - Returns: The composition; its duration is exact, 11 s for 4 s of which one plays at 1/8.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideSource`, `.overlappingRanges` (which
  ///   names both), or `.notExact` when a boundary does not fit a `MediaTime`.
  public static func retimed(
    _ source: MediaSource, changes: [SpeedChange]
  ) throws(MediaError) -> Composition {
    for change in changes { try source.check(change.range) }
    try checkApart(changes.map(\.range), of: source)
    let ordered = changes.sorted { $0.range.start < $1.range.start }
    var composition = Composition(source)
    // From the last to the first: what lies before a range still plays at its source time.
    for change in ordered.reversed() {
      try composition.setSpeed(change.speed, in: change.range)
    }
    return composition
  }

  /// Makes a composition that plays a whole source at another rate, each frame once.
  ///
  /// What was captured at an even rate has just this rate then.
  ///
  /// - Parameters:
  ///   - source: What is played.
  ///   - frameCount: How many frames it has, above zero.
  ///   - rate: Frames per second of the composition, whose duration is exactly `frameCount`
  ///     over it.
  /// - Returns: The composition.
  /// - Throws: `MediaError` with `.emptyRange` for no frames, or `.notExact`.
  public static func conformed(
    _ source: MediaSource, frameCount: Int64, to rate: FrameRate
  ) throws(MediaError) -> Composition {
    var composition = Composition(source)
    try exactly("playing \(source.path) at \(rate) frames a second") { () throws(MediaError) in
      try composition.scaleTimeRange(
        TimeRange(duration: source.duration),
        toDuration: MediaTime(Rational(frameCount) / rate.framesPerSecond))
    }
    return composition
  }

  /// A speed that is reached at an instant of a source.
  public struct SpeedPoint: Hashable, Sendable {
    /// The instant, in the time of the source.
    public let time: MediaTime
    /// The speed there.
    public let speed: Speed

    /// Makes a point.
    public init(_ time: MediaTime, _ speed: Speed) {
      self.time = time
      self.speed = speed
    }
  }

  /// Makes a composition that plays a whole source, its speed going from point to point.
  ///
  /// Before the first point the speed is that of the first, after the last that of the last. Of
  /// two points at one time the speed jumps from the first one's to the second one's.
  ///
  /// - Parameters:
  ///   - source: What is played.
  ///   - points: In ascending order of time, inside the source; at least one.
  ///   - easing: How the speed goes from one point to the next.
  /// - Returns: The composition.
  /// - Throws: `MediaError` with `.outsideSource`, `.overlappingRanges` for points that do not
  ///   ascend, or `.notExact` when a boundary does not fit a `MediaTime`.
  public static func ramped(
    _ source: MediaSource, points: [SpeedPoint], easing: SpeedRamp.Easing = .linear
  ) throws(MediaError) -> Composition {
    for (first, second) in zip(points, points.dropFirst()) where first.time > second.time {
      throw MediaError(
        .overlappingRanges,
        "the ramp goes from \(first.time.displayText) s back to \(second.time.displayText) s")
    }
    for point in points where point.time < .zero || point.time > source.duration {
      throw MediaError(
        .outsideSource,
        "\(point.time.displayText) s is not inside \(source.path), which ends at "
          + "\(source.duration.displayText) s")
    }
    guard let first = points.first, let last = points.last else { return Composition(source) }
    let ends = [SpeedPoint(.zero, first.speed)] + points + [SpeedPoint(source.duration, last.speed)]
    var composition = Composition(source)
    for (start, end) in zip(ends, ends.dropFirst()).reversed() where start.time < end.time {
      let range = try TimeRange(start: start.time, end: end.time)
      if start.speed == end.speed {
        try composition.setSpeed(start.speed, in: range)
      } else {
        try composition.setSpeedRamp(
          SpeedRamp(from: start.speed, to: end.speed, easing: easing), in: range)
      }
    }
    return composition
  }
}
