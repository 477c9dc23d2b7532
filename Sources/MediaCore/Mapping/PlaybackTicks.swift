// SPDX-License-Identifier: Apache-2.0

/// The instants of source times, in whole ticks of a timescale.
///
/// Made once for a mapping and a timescale, and asked for each frame. Where the instant is no
/// fraction (it is the root of a polynomial) it is found among the ticks by comparing whole
/// numbers without a limit, so the rounding is that of the exact instant.
public struct PlaybackTicks: Sendable {
  /// A tick, and how far it may be from the exact instant.
  public struct RoundedTick: Hashable, Sendable {
    /// The tick.
    public let ticks: Int64
    /// The distance in seconds; where the instant is no fraction, up to 1/64 of a tick more.
    public let error: Rational
  }

  private let mapping: PlaybackMapping
  private let timescale: Int32
  private let share: SharePolynomial
  /// The place in the whole motion at a step is `(slope·step + offset) / divisor`.
  private let slope: Int128
  private let offset: Int128
  private let divisor: Int128
  /// The steps at or before the start of the target, and at or after its end.
  private let first: Int128
  private let last: Int128

  /// Steps in a tick: an even number, so that half a tick is a step.
  private static let stepsPerTick: Int128 = 64

  /// Prepares the instants of a mapping.
  ///
  /// - Throws: `MediaError` with `.notPositive` for a timescale of zero or below, `.overflow`
  ///   when the mapping's numbers are too long.
  public init(_ mapping: PlaybackMapping, timescale: Int32) throws(MediaError) {
    guard timescale > 0 else {
      throw MediaError(.notPositive, "the timescale \(timescale) is not above zero")
    }
    self.mapping = mapping
    self.timescale = timescale
    share = try mapping.share()
    let steps = Rational(Int128(timescale) * Self.stepsPerTick)
    let (start, end) = (mapping.target.start.seconds, mapping.target.end.seconds)
    first = try (start * steps).rounded(.towardNegativeInfinity)
    last = try (end * steps).rounded(.towardPositiveInfinity)
    let (lower, upper) =
      mapping.isReversed
      ? (mapping.part.upper, mapping.part.lower) : (mapping.part.lower, mapping.part.upper)
    let perSecond = (upper - lower) / mapping.target.duration
    let perStep = try (perSecond / steps).checked("the ticks of \(mapping)")
    let zero = try (lower - start * perSecond).checked("the ticks of \(mapping)")
    let shared = Int128(
      greatestCommonDivisor(perStep.denominator.magnitude, zero.denominator.magnitude))
    let common = perStep.denominator.multipliedReportingOverflow(by: zero.denominator / shared)
    guard !common.overflow else { throw .overflow("the ticks of \(mapping)") }
    divisor = common.partialValue
    let above = perStep.numerator.multipliedReportingOverflow(by: divisor / perStep.denominator)
    let zeroth = zero.numerator.multipliedReportingOverflow(by: divisor / zero.denominator)
    guard !above.overflow, !zeroth.overflow else { throw .overflow("the ticks of \(mapping)") }
    slope = above.partialValue
    offset = zeroth.partialValue
  }

  /// The tick at which a source time plays.
  ///
  /// What lies before or after the source that is played is at the nearer end of the target;
  /// what is held plays at its start.
  ///
  /// - Throws: `MediaError` with `.overflow` when the result does not fit.
  public func tick(
    at time: Rational, rounding: TimeRounding
  ) throws(MediaError) -> RoundedTick {
    let time = try time.checked("a time of a source")
    let isForward = !mapping.isReversed
    let (start, end) = (mapping.target.start.seconds, mapping.target.end.seconds)
    if mapping.motion == .hold { return try round(start, rounding) }
    if time <= mapping.sourceStart { return try round(isForward ? start : end, rounding) }
    if time >= mapping.sourceEnd { return try round(isForward ? end : start, rounding) }
    let value = try ((time - mapping.whole.start.seconds) / mapping.whole.duration)
      .checked("a tick of \(mapping)")
    if mapping.motion == .constant {
      let share = isForward ? value : 1 - value
      return try round(
        share * mapping.target.duration + start, rounding)
    }
    let (step, isExact) = try step(reaching: value)
    return try round(step, isExact: isExact, rounding)
  }

  // MARK: Searching

  /// The last step at which no more than a share of the source has played (or, backwards, is
  /// left), and whether it is just that.
  private func step(reaching value: Rational) throws(MediaError) -> (Int128, isExact: Bool) {
    // At the first step nothing more has played, at the last all has.
    var (low, high) = (first, last)
    var isExact = false
    func isReached(_ step: Int128) throws(MediaError) -> Bool {
      let order = try compare(step, value)
      if order == 0 { isExact = true }
      return order <= 0
    }
    var guess = min(max(estimate(value), low + 1), high - 1)
    var stride: Int128 = 1
    while low + 1 < high {
      guard low < guess, guess < high else {
        guess = low + (high - low) / 2
        continue
      }
      if try isReached(guess) {
        low = guess
        if isExact { break }
        guess = low + stride
      } else {
        high = guess
        guess = high - stride
      }
      stride *= 2
    }
    return (low, isExact)
  }

  /// Whether at a step less than, just, or more than a share of the source has played.
  private func compare(_ step: Int128, _ value: Rational) throws(MediaError) -> Int {
    let product = slope.multipliedReportingOverflow(by: step)
    let position = product.partialValue.addingReportingOverflow(offset)
    guard !product.overflow, !position.overflow else { throw .overflow("a tick of \(mapping)") }
    let order = share.compare(at: position.partialValue, over: divisor, with: value)
    return mapping.isReversed ? -order : order
  }

  /// Where to look first; what is found does not depend on it.
  private func estimate(_ value: Rational) -> Int128 {
    let position = share.estimate(
      of: value.doubleValue, from: mapping.part.lower.doubleValue,
      to: mapping.part.upper.doubleValue)
    let steps = (position * Double(divisor) - Double(offset)) / Double(slope)
    guard steps.isFinite, steps.magnitude < 1e37 else { return first }
    return Int128(steps)
  }

  // MARK: Rounding

  private func round(
    _ seconds: Rational, _ rounding: TimeRounding
  ) throws(MediaError) -> RoundedTick {
    let exact = try (seconds * Rational(Int64(timescale))).checked("a tick of \(mapping)")
    let ticks = try exact.rounded(rounding)
    let error = exact - Rational(ticks)
    return try RoundedTick(ticks: fitting(ticks), error: inSeconds(error))
  }

  private func round(
    _ step: Int128, isExact: Bool, _ rounding: TimeRounding
  ) throws(MediaError) -> RoundedTick {
    // Between two steps there is no whole tick and no half one: all of it rounds alike.
    let twice = 2 * step + (isExact ? 0 : 1)
    let exact = Rational(twice, over: 2 * Self.stepsPerTick)
    let ticks = try exact.rounded(rounding)
    let size = (exact - Rational(ticks)).magnitude
    let slack = isExact ? Rational.zero : Rational(1, over: 2 * Self.stepsPerTick)
    return try RoundedTick(ticks: fitting(ticks), error: inSeconds(size + slack))
  }

  private func inSeconds(_ ticks: Rational) throws(MediaError) -> Rational {
    try (ticks.magnitude / Rational(Int64(timescale))).checked("a tick of \(mapping)")
  }

  private func fitting(_ ticks: Int128) throws(MediaError) -> Int64 {
    guard let ticks = Int64(exactly: ticks) else { throw .overflow("a tick of \(mapping)") }
    return ticks
  }
}

extension PlaybackMapping {
  /// The tick at which a source time plays, rounded once from the exact instant.
  ///
  /// To place many, make a ``PlaybackTicks`` once.
  ///
  /// - Throws: `MediaError` as ``PlaybackTicks`` does.
  public func ticks(
    ofSource time: Rational, timescale: Int32, rounding: TimeRounding
  ) throws(MediaError) -> Int64 {
    try PlaybackTicks(self, timescale: timescale).tick(at: time, rounding: rounding).ticks
  }
}
