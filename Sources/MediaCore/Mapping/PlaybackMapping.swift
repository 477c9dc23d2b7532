// SPDX-License-Identifier: Apache-2.0

/// A mapping from composition time to source time, for one range of a composition.
///
/// The motion is constant, a speed ramp or a hold, each forward or reversed. Each motion is a
/// polynomial with rational coefficients, so the source time at an instant is exact. The instant at
/// which a source time plays may be irrational; ``ticks(ofSource:timescale:rounding:)`` rounds it
/// once, to a tick.
///
/// The end of the source range is not part of it, whether it plays forward or reversed. So a
/// reversed mapping starts with the frame that is on screen just before the end.
public struct PlaybackMapping: Hashable, Sendable {
  /// A kind of motion: the relation between source time and composition time.
  public enum Motion: Hashable, Sendable {
    /// Constant speed.
    case constant
    /// Changing speed; ``PlaybackMapping/speed(at:)`` returns the resulting speed.
    case ramp(SpeedRamp)
    /// The frame at one instant of the source stays on screen.
    case hold
  }

  /// The kind of motion.
  public let motion: Motion
  /// True if the source plays backwards, false if forwards.
  ///
  /// If true, an instant shows the frame that is on screen just before its source time.
  public let isReversed: Bool
  /// The target range in composition time, longer than zero.
  public let target: TimeRange
  /// The lower bound of the played source range, in seconds.
  ///
  /// Reversed mappings play from the upper bound to the lower one.
  public let sourceStart: Rational
  /// The upper bound of the played source range, in seconds.
  ///
  /// For a hold both bounds are equal.
  public let sourceEnd: Rational
  /// The source range of the whole motion; this mapping may be a part of that motion.
  package let whole: TimeRange
  /// This mapping's part of the whole motion: its bounds as fractions of the duration of the whole
  /// motion, played forward.
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

  private init(_ mapping: TimeMapping, isReversed: Bool, motion: Motion = .constant) {
    (self.motion, self.isReversed) = (motion, isReversed)
    target = mapping.target
    whole = mapping.source
    part = .all
    sourceStart = whole.start.seconds
    sourceEnd = whole.end.seconds
  }

  /// Makes a mapping that plays a source range along a speed ramp.
  ///
  /// The two ranges set the mean speed, and the ramp sets how the speed changes around it. To play
  /// at exactly the speeds of the ramp, the target must last ``SpeedRamp/targetDuration(of:)``.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when one range is empty, `.overflow` when the ratio
  ///   of the speeds does not fit 128-bit integers.
  public init(
    _ ramp: SpeedRamp, source: TimeRange, target: TimeRange
  ) throws(MediaError) {
    _ = try ramp.shareOfSource()
    self.init(
      try TimeMapping(source: source, target: target), isReversed: false, motion: .ramp(ramp))
  }

  /// Makes a mapping that holds one source instant.
  ///
  /// - Parameters:
  ///   - source: The held instant, in source time.
  ///   - isBefore: True to show the frame just before the instant, which is needed at the end of a
  ///     clip and in reverse playback; ``isReversed`` is then true. False to show the frame at the
  ///     instant.
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
    (self.motion, self.isReversed, self.whole, self.part) = (motion, isReversed, whole, part)
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
    // `whole` is the source range of this mapping: only ramps are stored as parts of a whole
    // motion, and a constant motion is split by cutting its source range.
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
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit 128-bit integers.
  public func sourceSeconds(of time: Rational) throws(MediaError) -> Rational {
    let position = try position(at: time.checked("a time of a composition"))
    if position == part.lower { return sourceStart }
    if position == part.upper { return sourceEnd }
    return try (share().value(at: position) * whole.duration + whole.start.seconds)
      .checked("the source time at \(time.exactDisplayText)")
  }

  /// Returns the speed at an instant, in source seconds per composition second.
  ///
  /// The speed is negative for a reversed mapping.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit 128-bit integers.
  public func speed(at time: Rational) throws(MediaError) -> Rational {
    let share = part.upper - part.lower
    let time = try time.checked("a time of a composition")
    let slope = try self.share().slope(at: position(at: time)) * whole.duration * share
    let speed = try (slope / target.duration).checked("the speed at \(time.exactDisplayText)")
    return isReversed ? -speed : speed
  }

  /// Returns the mean speed, in source seconds per composition second; nil for a hold.
  ///
  /// - Throws: `MediaError` with `.overflow` when the fraction does not fit 128-bit integers.
  public func meanSpeed() throws(MediaError) -> Speed? {
    guard motion != .hold else { return nil }
    return try Speed(
      (sourceEnd - sourceStart) / target.duration)
  }

  /// Returns the position in the whole motion at an instant, as a fraction of the motion's duration
  /// from 0 to 1.
  ///
  /// In a reversed mapping, a later instant has a lower position.
  package func position(at time: Rational) -> Rational {
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
  /// Together the two parts play exactly as the mapping does.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when the instant is not inside the target,
  ///   `.overflow` when the source time of the cut is not exactly representable.
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
  /// The source range and the target range in seconds, as `"1/1..2/1 -> 1/1..9/1"`.
  ///
  /// Prefixed with `reversed`, `ramp` or `hold` where these apply.
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

extension PlaybackMapping {
  /// Makes a part of a ramp, such as the parts that ``split(at:)`` returns.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an empty range or part, `.overflow` for numbers
  ///   that do not fit 128-bit integers, `.outsideSource` for a part that is not between 0 and 1.
  package init(
    partOf ramp: SpeedRamp, source: TimeRange, from lower: Rational, to upper: Rational,
    isReversed: Bool, target: TimeRange
  ) throws(MediaError) {
    guard lower >= .zero, upper <= .one, !source.isEmpty else {
      throw MediaError(.outsideSource, "the part from \(lower) to \(upper) is not inside its ramp")
    }
    guard lower < upper else { throw MediaError(.emptyRange, "the part of the ramp is empty") }
    try self.init(
      .ramp(ramp), isReversed: isReversed, whole: source, part: Part(lower: lower, upper: upper),
      target: target)
  }

  /// Approximates a ramp by consecutive constant-speed mappings.
  ///
  /// For a mapping that is not a ramp, the result is the mapping alone.
  ///
  /// At the ends of the pieces, the source time differs from that of the ramp by at most 1 ns. In
  /// between, the error is larger; it grows with the square of the piece's length.
  ///
  /// - Parameters:
  ///   - perSecond: Pieces per second of output.
  ///   - least: The minimum number of pieces.
  /// - Returns: Mappings with contiguous targets.
  /// - Throws: `MediaError` with `.overflow` when a time does not fit a `MediaTime`.
  package func linearPieces(
    perSecond: Int64, atLeast least: Int64
  ) throws(MediaError) -> [PlaybackMapping] {
    guard case .ramp = motion else { return [self] }
    let length = target.duration
    let wanted = try (length * Rational(perSecond)).rounded(.towardPositiveInfinity)
    let count = max(least, min(Self.maximumPieces, Int64(clamping: wanted)))
    var ends: [(target: MediaTime, source: MediaTime)] = []
    for number in 0...count {
      let share = Rational(Int128(number), over: Int128(count))
      var time = number == 0 ? target.start : target.end
      if number > 0, number < count {
        time = try Self.nanoseconds(length * share + target.start.seconds)
      }
      let played = try source(after: share)
      // In a ramp of a few nanoseconds, a piece may round to zero length. Such a piece is merged
      // with its neighbor, so that the last piece still ends exactly where the ramp ends.
      if let last = ends.last, time <= last.target || played == last.source {
        guard number == count, ends.count > 1 else { continue }
        ends.removeLast()
      }
      ends.append((time, played))
    }
    var pieces: [PlaybackMapping] = []
    for (first, second) in zip(ends, ends.dropFirst()) {
      let line = try TimeMapping(
        source: TimeRange(
          start: min(first.source, second.source), end: max(first.source, second.source)),
        target: TimeRange(start: first.target, end: second.target))
      pieces.append(isReversed ? PlaybackMapping(reversing: line) : PlaybackMapping(line))
    }
    return pieces
  }

  /// Returns the source time at a fraction of the target's duration.
  ///
  /// The result is exact if it fits a `MediaTime`; otherwise it is rounded down to a nanosecond.
  private func source(after share: Rational) throws(MediaError) -> MediaTime {
    let (first, last) = isReversed ? (part.upper, part.lower) : (part.lower, part.upper)
    let position = (last - first) * share + first
    let (start, length) = (whole.start.seconds, whole.duration)
    let curve = try self.share()
    let billion: Rational = 1_000_000_000
    if let exact = (curve.value(at: position) * length + start).ifValid {
      if let time = try? MediaTime(exact) { return time }
      let units = try? (exact * billion).rounded(.towardNegativeInfinity)
      if let units, let nanoseconds = Int64(exactly: units) {
        return min(max(MediaTime(nanoseconds: nanoseconds), whole.start), whole.end)
      }
    }
    // The polynomial's value may not fit 128 bits, so it cannot be computed and rounded. It can be
    // compared with a number in wider integers, so the nanosecond is found by bisection.
    var low = try (start * billion).rounded(.towardNegativeInfinity)
    var high = try (whole.end.seconds * billion).rounded(.towardPositiveInfinity)
    while low + 1 < high {
      let middle = low + (high - low) / 2
      let value = (Rational(middle, over: 1_000_000_000) - start) / length
      let order = curve.compare(at: position.numerator, over: position.denominator, with: value)
      if order >= 0 { low = middle } else { high = middle }
    }
    guard let nanoseconds = Int64(exactly: low) else { throw .overflow("a part of \(self)") }
    return min(max(MediaTime(nanoseconds: nanoseconds), whole.start), whole.end)
  }

  /// The largest number of pieces: ten minutes at 25 pieces per second.
  ///
  /// A ramp that would need more gets this number of longer pieces.
  private static let maximumPieces: Int64 = 15_000

  private static func nanoseconds(_ seconds: Rational) throws(MediaError) -> MediaTime {
    let units = try (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
    guard let value = Int64(exactly: units) else {
      throw .overflow("the time \(seconds.exactDisplayText)")
    }
    return MediaTime(nanoseconds: value)
  }

  /// Returns the source time that plays at an instant of the composition, in seconds.
  ///
  /// The result is exact if it is a fraction of 128-bit integers. Otherwise the instant is first
  /// rounded down to a multiple of 1/240000 s or, if that does not help, of 1/24000 s or 1/1000 s.
  package func nearSourceSeconds(of time: Rational) -> Rational {
    if let exact = try? sourceSeconds(of: time) { return exact }
    for scale in [240_000, 24_000, 1_000] as [Int64] {
      guard let units = try? (time * Rational(scale)).rounded(.towardNegativeInfinity),
        let near = try? sourceSeconds(of: Rational(units, over: Int128(scale)))
      else { continue }
      return near
    }
    return isReversed ? sourceEnd : sourceStart
  }
}

extension PlaybackMapping: Codable {
  private enum CodingKeys: CodingKey {
    case motion, ramp, isReversed, source, target, partStart, partEnd
  }

  private enum MotionName: String, Codable { case constant, ramp, hold }

  /// Decodes a mapping.
  ///
  /// - Throws: `DecodingError` for malformed input, an empty target, and a part of a ramp that is
  ///   not between 0 and 1.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let motion: Motion =
      switch try container.decode(MotionName.self, forKey: .motion) {
      case .constant: .constant
      case .ramp: .ramp(try container.decode(SpeedRamp.self, forKey: .ramp))
      case .hold: .hold
      }
    let isReversed = try container.decode(Bool.self, forKey: .isReversed)
    let source = try container.decode(TimeRange.self, forKey: .source)
    let target = try container.decode(TimeRange.self, forKey: .target)
    var part = Part.all
    if case .ramp = motion {
      part.lower = try container.decodeIfPresent(Rational.self, forKey: .partStart) ?? .zero
      part.upper = try container.decodeIfPresent(Rational.self, forKey: .partEnd) ?? .one
    }
    guard part.lower >= .zero, part.lower < part.upper, part.upper <= .one,
      source.isEmpty == (motion == .hold)
    else {
      throw DecodingError.dataCorruptedError(
        forKey: .source, in: container,
        debugDescription: "the source range \(source.displayText) does not fit the motion")
    }
    self = try decoder.checked { () throws(MediaError) in
      try PlaybackMapping(
        motion, isReversed: isReversed, whole: source, part: part, target: target)
    }
  }

  /// Encodes the motion, the source range of the whole motion, and the target range.
  ///
  /// For a part of a ramp, the start and the end of the part are encoded too, as fractions of the
  /// whole ramp's output duration.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch motion {
    case .constant: try container.encode(MotionName.constant, forKey: .motion)
    case .hold: try container.encode(MotionName.hold, forKey: .motion)
    case .ramp(let ramp):
      try container.encode(MotionName.ramp, forKey: .motion)
      try container.encode(ramp, forKey: .ramp)
      if part != .all {
        try container.encode(part.lower, forKey: .partStart)
        try container.encode(part.upper, forKey: .partEnd)
      }
    }
    try container.encode(isReversed, forKey: .isReversed)
    try container.encode(whole, forKey: .source)
    try container.encode(target, forKey: .target)
  }
}
