// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension Composition {
  /// A source range, its playback speed and its direction.
  public struct SpeedChange: Hashable, Sendable {
    /// The range in source time.
    public let range: TimeRange
    /// The playback speed of the range.
    public let speed: Speed
    /// True if the range plays backwards, false if forwards.
    public let isReversed: Bool

    /// Creates a speed change.
    public init(_ speed: Speed, in range: TimeRange, isReversed: Bool = false) {
      self.range = range
      self.speed = speed
      self.isReversed = isReversed
    }
  }

  /// Returns a composition of a whole source with some ranges at other speeds or backwards.
  ///
  /// Time outside all ranges plays at speed 1.
  ///
  /// - Parameters:
  ///   - source: The source to play.
  ///   - changes: The ranges and speeds, in any order. Ranges may touch but not overlap.
  /// - Returns: The composition. Its duration is exact: 4 s with 1 s at 1/8 speed last 11 s.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideSource`, `.overlappingRanges` (the message
  ///   names both ranges), or `.notExact` if a boundary does not fit a `MediaTime`.
  public static func retimed(
    _ source: MediaSource, changes: [SpeedChange]
  ) throws(MediaError) -> Composition {
    for change in changes { try source.check(change.range) }
    try checkApart(changes.map(\.range), of: source)
    var composition = Composition(source)
    guard !changes.isEmpty else { return composition }
    // Builds one track by appending the ranges in order and copies it to all tracks. Editing the
    // composition would move all later segments at each edit, and a phone may store thousands of
    // ranges.
    var track = CompositionTrack(.video)
    var played = MediaTime.zero
    for change in changes.sorted(by: { $0.range.start < $1.range.start }) {
      try track.append(source, from: played, to: change.range.start)
      try track.append(source, change)
      played = change.range.end
    }
    try track.append(source, from: played, to: source.duration)
    for index in composition.tracks.indices { composition.tracks[index].segments = track.segments }
    return composition
  }

  /// Returns a composition that plays a whole source at another frame rate, with each frame shown
  /// once.
  ///
  /// A source with a constant rate then plays at exactly `rate`.
  ///
  /// - Parameters:
  ///   - source: The source to play.
  ///   - frameCount: The number of frames in the source, above zero.
  ///   - rate: The frame rate of the composition. The duration is exactly `frameCount / rate`.
  /// - Returns: The composition.
  /// - Throws: `MediaError` with `.emptyRange` if `frameCount` is not above zero, or `.notExact` if
  ///   the duration does not fit a `MediaTime`.
  public static func conformed(
    _ source: MediaSource, frameCount: Int64, to rate: FrameRate
  ) throws(MediaError) -> Composition {
    var composition = Composition(source)
    try exactly("playing \(source.path) at \(rate) fps") { () throws(MediaError) in
      try composition.scaleTimeRange(
        TimeRange(duration: source.duration),
        toDuration: MediaTime(Rational(frameCount) / rate.framesPerSecond))
    }
    return composition
  }

  /// A speed at an instant of a source.
  public struct SpeedPoint: Hashable, Sendable {
    /// The instant in source time.
    public let time: MediaTime
    /// The speed at the instant.
    public let speed: Speed

    /// Creates a speed point.
    public init(_ time: MediaTime, _ speed: Speed) {
      self.time = time
      self.speed = speed
    }
  }

  /// Returns a composition of a whole source whose speed follows a list of points.
  ///
  /// The speed is constant before the first point and after the last. If two points have the same
  /// time, the speed jumps at that time from the first point's speed to the second's.
  ///
  /// - Parameters:
  ///   - source: The source to play.
  ///   - points: The points in ascending order of time, inside the source; at least one.
  ///   - easing: The shape of the speed change between two points.
  /// - Returns: The composition.
  /// - Throws: `MediaError` with `.outsideSource`, `.overlappingRanges` for points that are not in
  ///   ascending order, or `.notExact` if a boundary does not fit a `MediaTime`.
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

extension CompositionTrack {
  /// Appends a source range at speed 1, unless it is empty.
  fileprivate mutating func append(
    _ source: MediaSource, from start: MediaTime, to end: MediaTime
  ) throws(MediaError) {
    guard start < end else { return }
    try append(source, Composition.SpeedChange(.normal, in: TimeRange(start: start, end: end)))
  }

  /// Appends a source range at its speed and in its direction.
  fileprivate mutating func append(
    _ source: MediaSource, _ change: Composition.SpeedChange
  ) throws(MediaError) {
    // Returns the time in lowest terms, as a cut of the composition would store it; the end of the
    // source is returned unchanged.
    func boundary(_ time: MediaTime) throws(MediaError) -> MediaTime {
      time == source.duration ? source.duration : try MediaTime(time.seconds)
    }
    let range = try TimeRange(
      start: boundary(change.range.start), end: boundary(change.range.end))
    segments.append(
      try exactly("playing \(range.displayText) at speed \(change.speed)") {
        () throws(MediaError) in
        let target = try TimeRange(
          start: duration, end: MediaTime(duration.seconds + range.duration * change.speed.stretch))
        let line = try TimeMapping(source: range, target: target)
        return TrackSegment(
          unchecked: source,
          change.isReversed ? PlaybackMapping(reversing: line) : PlaybackMapping(line))
      })
  }
}
