// SPDX-License-Identifier: Apache-2.0

/// Which source time plays at each instant of a stretch of a composition.
///
/// Beside the line of a ``TimeMapping`` there are ramps from one speed to another, one instant
/// that is held, and all of these backwards. Every one is a polynomial with rational
/// coefficients: an instant's source time is exact, and the instant of a source time, which need
/// be no fraction, is rounded once, to a tick, by ``ticks(ofSource:timescale:rounding:)``.
///
/// The source range is half-open, whichever way it plays: backwards, the first thing shown is
/// what is on just before its end.
public struct PlaybackMapping: Hashable, Sendable {
  /// How the source goes on while the output does.
  public enum Motion: Hashable, Sendable {
    /// At one speed.
    case constant
    /// From one speed to another; ``PlaybackMapping/speed(at:)`` says what they come to.
    case ramp(SpeedRamp)
    /// Not at all: one instant is held.
    case hold
  }

  /// How the source goes on while the output does.
  public let motion: Motion
  /// Whether it plays backwards, so that what is shown is what is on just before the source time.
  public let isReversed: Bool
  /// Where it is played, in the time of the composition; longer than zero.
  public let target: TimeRange
  /// The first instant of the source that is played, in seconds, whichever way it plays.
  public let sourceStart: Rational
  /// The end of what is played, in seconds of the source; not before the start, and equal to it
  /// only where one instant is held.
  public let sourceEnd: Rational
  /// What the whole motion plays, of which this may be a part.
  package let whole: TimeRange
  /// The part of the whole motion's own time, from 0 to 1, that is left.
  package let part: Part

  package struct Part: Hashable, Sendable {
    package var lower: Rational
    package var upper: Rational

    static let all = Part(lower: .zero, upper: .one)
  }

  /// Makes what plays at one speed, forwards.
  public init(_ mapping: TimeMapping) {
    self.init(mapping, isReversed: false)
  }

  /// Makes what plays at one speed, backwards.
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

  /// Makes what plays a source range at changing speed.
  ///
  /// The ramp says how the speed changes; how fast it is in all is said by the two ranges. At
  /// the ramp's own speeds the target lasts ``SpeedRamp/targetDuration(of:)``.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when one of the ranges is empty, `.overflow` for
  ///   speeds whose ratio does not fit.
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

  /// Makes what shows one instant of a source throughout.
  ///
  /// - Parameters:
  ///   - source: The instant, in the time of the source.
  ///   - isBefore: Whether what is on just before the instant is shown, as where something ends
  ///     or plays backwards; ``isReversed`` is then true.
  ///   - target: Where it is shown.
  /// - Throws: `MediaError` with `.emptyRange` when the target is empty.
  public init(
    holding source: MediaTime, isBefore: Bool = false, target: TimeRange
  ) throws(MediaError) {
    guard !target.isEmpty else {
      throw MediaError(.emptyRange, "what holds \(source.displayText) s has no length")
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
      throw MediaError(.emptyRange, "a mapping to \(target.displayText) has an empty side")
    }
    self.motion = motion
    self.isReversed = isReversed
    self.whole = whole
    self.part = part
    self.target = target
    let share = try Self.share(motion)
    func source(at place: Rational) throws(MediaError) -> Rational {
      try (share.value(at: place) * whole.duration + whole.start.seconds)
        .checked("the source of a part of a ramp")
    }
    sourceStart = try source(at: part.lower)
    sourceEnd = try source(at: part.upper)
  }

  /// What it is where it plays at one speed, forwards; else nil.
  public var line: TimeMapping? {
    motion == .constant && !isReversed ? lineOfConstant : nil
  }

  /// The ranges of what plays at one speed, either way.
  private var lineOfConstant: TimeMapping? {
    // A constant motion is never a part: its source range was cut.
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
  /// The source time that plays at an instant of the composition, exactly.
  ///
  /// Before the target range it is the one of its start, after it the one of its end.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit.
  public func sourceSeconds(of time: Rational) throws(MediaError) -> Rational {
    let place = try place(at: time.checked("a time of a composition"))
    if place == part.lower { return sourceStart }
    if place == part.upper { return sourceEnd }
    return try (share().value(at: place) * whole.duration + whole.start.seconds)
      .checked("the source time at \(time.exactDisplayText)")
  }

  /// Source seconds per composition second at an instant, below zero where it plays backwards.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit.
  public func speed(at time: Rational) throws(MediaError) -> Rational {
    let share = part.upper - part.lower
    let time = try time.checked("a time of a composition")
    let slope = try self.share().slope(at: place(at: time)) * whole.duration * share
    let speed = try (slope / target.duration).checked("the speed at \(time.exactDisplayText)")
    return isReversed ? -speed : speed
  }

  /// Source seconds per composition second over all of it; nil where one instant is held.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit.
  public func meanSpeed() throws(MediaError) -> Speed? {
    guard motion != .hold else { return nil }
    return try Speed(
      (sourceEnd - sourceStart) / target.duration)
  }

  /// How far the whole motion is at an instant, from 0 to 1.
  private func place(at time: Rational) -> Rational {
    let (first, last) = isReversed ? (part.upper, part.lower) : (part.lower, part.upper)
    if time <= target.start.seconds { return first }
    if time >= target.end.seconds { return last }
    return (time - target.start.seconds) / target.duration * (last - first) + first
  }
}

// MARK: Editing

extension PlaybackMapping {
  /// The same content, filling another time.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when the range is empty.
  public func filling(_ target: TimeRange) throws(MediaError) -> PlaybackMapping {
    try PlaybackMapping(
      motion, isReversed: isReversed, whole: whole, part: part, target: target)
  }

  /// The same content in the same time, the other way round.
  public func reversed() throws(MediaError) -> PlaybackMapping {
    guard motion != .hold else { return self }
    return try PlaybackMapping(
      motion, isReversed: !isReversed, whole: whole, part: part, target: target)
  }

  /// The parts before and after an instant inside; each plays as it did.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an instant that is not inside, `.overflow`
  ///   when the source time of the cut cannot be said exactly.
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
      let place = place(at: time.seconds)
      let (early, late) = (
        Part(lower: part.lower, upper: place), Part(lower: place, upper: part.upper)
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
  /// The mapping as `"1/1..2/1 -> 1/1..9/1"`, with `reversed`, `ramp` or `hold` in front where
  /// it is no forward line.
  public var description: String {
    let words: String
    switch motion {
    case .constant: words = ""
    case .ramp(let ramp): words = "ramp \(ramp) of "
    case .hold: return "hold \(isReversed ? "before " : "")\(sourceStart) -> \(target)"
    }
    let source = motion == .constant ? "\(whole)" : "\(sourceStart)..\(sourceEnd)"
    return "\(isReversed ? "reversed " : "")\(words)\(source) -> \(target)"
  }
}
