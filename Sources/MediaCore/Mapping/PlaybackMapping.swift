// SPDX-License-Identifier: Apache-2.0

/// A mapping from composition time to source time, for one range of a composition.
///
/// The motion is constant, a speed ramp or a hold, each forward or reversed. Each motion is a
/// polynomial with rational coefficients, so source times are exact. The inverse may be irrational;
/// ``ticks(ofSource:timescale:rounding:)`` rounds it once, to a tick.
///
/// The source range is half-open in both directions. A reversed mapping starts with the frame shown
/// just before the range's end.
public struct PlaybackMapping: Hashable, Sendable {
  /// The progress of the source relative to the output.
  public enum Motion: Hashable, Sendable {
    /// Constant speed.
    case constant
    /// Changing speed; ``PlaybackMapping/speed(at:)`` returns the resulting speed.
    case ramp(SpeedRamp)
    /// One source instant is held.
    case hold
  }

  /// The progress of the source relative to the output.
  public let motion: Motion
  /// Whether the source plays backwards.
  ///
  /// Each instant then shows the frame just before the source time.
  public let isReversed: Bool
  /// The target range in composition time, longer than zero.
  public let target: TimeRange
  /// The lower bound of the played source range, in seconds, in either direction.
  public let sourceStart: Rational
  /// The upper bound of the played source range, in seconds.
  ///
  /// Equal to ``sourceStart`` only for a hold.
  public let sourceEnd: Rational
  /// The source range of the whole motion; this mapping may be a part of that motion.
  package let whole: TimeRange
  /// This mapping's part of the whole motion, from 0 to 1.
  package let part: Part

  package struct Part: Hashable, Sendable {
    package var lower: Rational
    package var upper: Rational

    static let all = Part(lower: .zero, upper: .one)
  }

  /// Makes a forward mapping at constant speed.
  public init(_ mapping: TimeMapping) {
    self.init(mapping, isReversed: false)
  }

  /// Makes a reversed mapping at constant speed.
  public init(reversing mapping: TimeMapping) {
    self.init(mapping, isReversed: true)
  }

  private init(_ mapping: TimeMapping, isReversed: Bool) {
    motion = .constant
    self.isReversed = isReversed
    target = mapping.target
    whole = mapping.source
    part = .all
    sourceStart = whole.start.seconds
    sourceEnd = whole.end.seconds
  }

  /// Makes a mapping that plays a source range along a speed ramp.
  ///
  /// The ramp sets the shape of the speed change, the two ranges set the mean speed. The target
  /// lasts ``SpeedRamp/targetDuration(of:)`` at the ramp's own speeds.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when one range is empty, `.overflow` when the ratio
  ///   of the speeds does not fit.
  public init(
    _ ramp: SpeedRamp, source: TimeRange, target: TimeRange
  ) throws(MediaError) {
    _ = try ramp.shareOfSource()
    let line = try TimeMapping(source: source, target: target)
    motion = .ramp(ramp)
    isReversed = false
    self.target = line.target
    whole = line.source
    part = .all
    sourceStart = whole.start.seconds
    sourceEnd = whole.end.seconds
  }

  /// Makes a mapping that holds one source instant.
  ///
  /// - Parameters:
  ///   - source: The held instant, in source time.
  ///   - isBefore: Whether to show the frame just before the instant, as at a clip's end or in
  ///     reverse. ``isReversed`` is then true.
  ///   - target: The target range, in composition time.
  /// - Throws: `MediaError` with `.emptyRange` when the target is empty.
  public init(
    holding source: MediaTime, isBefore: Bool = false, target: TimeRange
  ) throws(MediaError) {
    guard !target.isEmpty else {
      throw MediaError(
        .emptyRange, "the hold of the source at \(source.displayText) s has an empty target")
    }
    motion = .hold
    isReversed = isBefore
    self.target = target
    whole = try TimeRange(start: source, end: source)
    part = .all
    sourceStart = source.seconds
    sourceEnd = source.seconds
  }

  init(
    _ motion: Motion, isReversed: Bool, whole: TimeRange, part: Part, target: TimeRange
  ) throws(MediaError) {
    guard !target.isEmpty else {
      throw MediaError(.emptyRange, "the target range \(target.displayText) is empty")
    }
    self.motion = motion
    self.isReversed = isReversed
    self.whole = whole
    self.part = part
    self.target = target
    let share = try Self.share(motion)
    func source(at position: Rational) throws(MediaError) -> Rational {
      try (share.value(at: position) * whole.duration + whole.start.seconds)
        .checked("the source of a part of a ramp")
    }
    sourceStart = try source(at: part.lower)
    sourceEnd = try source(at: part.upper)
  }

  /// The mapping as a `TimeMapping`; nil unless it plays forward at constant speed.
  public var line: TimeMapping? {
    motion == .constant && !isReversed ? lineOfConstant : nil
  }

  /// The source and target ranges of a constant motion, in either direction.
  private var lineOfConstant: TimeMapping? {
    // A constant motion is never a part: splitting one cuts its source range.
    try? TimeMapping(source: whole, target: target)
  }

  private static func share(_ motion: Motion) throws(MediaError) -> SharePolynomial {
    if case .ramp(let ramp) = motion { return try ramp.shareOfSource() }
    return .constant
  }

  func share() throws(MediaError) -> SharePolynomial { try Self.share(motion) }
}

// MARK: From the composition to the source

extension PlaybackMapping {
  /// Returns the exact source time that plays at an instant of the composition.
  ///
  /// Instants outside the target range return the source time of the nearer end.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit.
  public func sourceSeconds(of time: Rational) throws(MediaError) -> Rational {
    let position = try position(at: time.checked("a time of a composition"))
    if position == part.lower { return sourceStart }
    if position == part.upper { return sourceEnd }
    return try (share().value(at: position) * whole.duration + whole.start.seconds)
      .checked("the source time at \(time.exactDisplayText)")
  }

  /// Returns the speed at an instant, in source seconds per composition second.
  ///
  /// Negative in reverse.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit.
  public func speed(at time: Rational) throws(MediaError) -> Rational {
    let share = part.upper - part.lower
    let time = try time.checked("a time of a composition")
    let slope = try self.share().slope(at: position(at: time)) * whole.duration * share
    let speed = try (slope / target.duration).checked("the speed at \(time.exactDisplayText)")
    return isReversed ? -speed : speed
  }

  /// Returns the mean speed, in source seconds per composition second; nil for a hold.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit.
  public func meanSpeed() throws(MediaError) -> Speed? {
    guard motion != .hold else { return nil }
    return try Speed(
      (sourceEnd - sourceStart) / target.duration)
  }

  /// The progress of the whole motion at an instant, from 0 to 1.
  private func position(at time: Rational) -> Rational {
    let (first, last) = isReversed ? (part.upper, part.lower) : (part.lower, part.upper)
    if time <= target.start.seconds { return first }
    if time >= target.end.seconds { return last }
    return (time - target.start.seconds) / target.duration * (last - first) + first
  }
}

// MARK: Editing

extension PlaybackMapping {
  /// Returns the same content stretched to another target range.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when the target is empty.
  public func filling(_ target: TimeRange) throws(MediaError) -> PlaybackMapping {
    try PlaybackMapping(
      motion, isReversed: isReversed, whole: whole, part: part, target: target)
  }

  /// Returns the same content in the same target, played in the other direction.
  public func reversed() throws(MediaError) -> PlaybackMapping {
    guard motion != .hold else { return self }
    return try PlaybackMapping(
      motion, isReversed: !isReversed, whole: whole, part: part, target: target)
  }

  /// Splits the mapping at an instant inside its target.
  ///
  /// Both parts play as before.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an instant outside, `.overflow` when the source
  ///   time of the cut is not exactly representable.
  package func split(
    at time: MediaTime
  ) throws(MediaError) -> (before: PlaybackMapping, after: PlaybackMapping) {
    let first = try TimeRange(start: target.start, end: time)
    let second = try TimeRange(start: time, end: target.end)
    switch motion {
    case .hold: return (try filling(first), try filling(second))
    case .constant:
      let cut = try MediaTime(sourceSeconds(of: time.seconds))
      let early = try TimeRange(start: whole.start, end: cut)
      let late = try TimeRange(start: cut, end: whole.end)
      return try (
        PlaybackMapping(
          TimeMapping(source: isReversed ? late : early, target: first), isReversed: isReversed),
        PlaybackMapping(
          TimeMapping(source: isReversed ? early : late, target: second), isReversed: isReversed)
      )
    case .ramp:
      let position = position(at: time.seconds)
      let (early, late) = (
        Part(lower: part.lower, upper: position), Part(lower: position, upper: part.upper)
      )
      return try (
        PlaybackMapping(
          motion, isReversed: isReversed, whole: whole, part: isReversed ? late : early,
          target: first),
        PlaybackMapping(
          motion, isReversed: isReversed, whole: whole, part: isReversed ? early : late,
          target: second)
      )
    }
  }
}

extension PlaybackMapping: CustomStringConvertible {
  /// The mapping as `"1/1..2/1 -> 1/1..9/1"`, prefixed with `reversed`, `ramp` or `hold` where
  /// these apply.
  public var description: String {
    let shape: String
    switch motion {
    case .constant: shape = ""
    case .ramp(let ramp): shape = "ramp \(ramp) of "
    case .hold: return "hold \(isReversed ? "before " : "")\(sourceStart) -> \(target)"
    }
    let source = motion == .constant ? "\(whole)" : "\(sourceStart)..\(sourceEnd)"
    return "\(isReversed ? "reversed " : "")\(shape)\(source) -> \(target)"
  }
}
