// SPDX-License-Identifier: Apache-2.0

/// The playback instants of source times, in whole ticks of a timescale.
///
/// Create one value for a mapping and a timescale, and use it for every frame. An instant may be
/// irrational, because it is the root of a polynomial. It is located by comparing integers, so the
/// result is the exact instant, rounded once.
public struct PlaybackTicks: Sendable {
  /// A tick and its distance from the exact instant.
  public struct RoundedTick: Hashable, Sendable {
    /// The tick, in units of the timescale.
    public let ticks: Int64
    /// The distance between the tick and the exact instant, in seconds.
    ///
    /// For irrational instants the value may be 1/64 tick too large.
    public let error: Rational
  }

  private let mapping: PlaybackMapping
  private let timescale: Int32
  private let share: SharePolynomial
  /// The linear function from composition time to the position in the whole motion.
  ///
  /// Composition time is counted in steps of 1/64 tick. The position at a step, as a fraction of
  /// the motion's duration, is `(slope·step + offset) / divisor`.
  private let slope: Int128
  private let offset: Int128
  private let divisor: Int128
  /// The last step at or before the target's start, and the first step at or after its end.
  private let first: Int128
  private let last: Int128

  /// Steps per tick.
  ///
  /// The number is even, so that every half tick is a whole step. Rounding to the nearest tick
  /// changes at half ticks, so the step alone determines the rounded tick.
  private static let stepsPerTick: Int128 = 64

  /// Prepares the conversion for a mapping.
  ///
  /// - Throws: `MediaError` with `.notPositive` for a timescale of zero or below, `.overflow` when
  ///   the mapping's fractions do not fit 128-bit integers.
  public init(_ mapping: PlaybackMapping, timescale: Int32) throws(MediaError) {
    guard timescale > 0 else {
      throw MediaError(.notPositive, "the timescale \(timescale) is not above zero")
    }
    (self.mapping, self.timescale) = (mapping, timescale)
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

  /// Returns the tick at which a source time plays.
  ///
  /// Source times outside the played range return the nearer end of the target. A hold returns the
  /// start of the target.
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

  /// Returns the last step at or before the instant at which the source position `value` plays.
  ///
  /// `value` is a fraction of the whole source range. `isExact` is true if the instant is exactly
  /// at the step, and false if it lies after the step.
  private func step(reaching value: Rational) throws(MediaError) -> (Int128, isExact: Bool) {
    // The source position plays within the target range, so the step lies from `first` to `last`.
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

  /// Compares the source position at a step with `value`, both as fractions of the whole source
  /// range.
  ///
  /// Returns a negative number if the position at the step is lower, zero if it is equal, and a
  /// positive number if it is higher.
  private func compare(_ step: Int128, _ value: Rational) throws(MediaError) -> Int {
    let product = slope.multipliedReportingOverflow(by: step)
    let position = product.partialValue.addingReportingOverflow(offset)
    guard !product.overflow, !position.overflow else { throw .overflow("a tick of \(mapping)") }
    let order = share.compare(at: position.partialValue, over: divisor, with: value)
    return mapping.isReversed ? -order : order
  }

  /// Returns an estimate of the searched step, where the search starts.
  ///
  /// A poor estimate makes the search slower, but does not change its result.
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
    // A rounded result changes only at whole and half ticks, and each of them is a step. So all
    // instants between two steps round to the same tick. The middle between the steps is rounded
    // instead of the exact instant, which may be irrational.
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
  /// Returns the tick at which a source time plays, rounded once from the exact instant.
  ///
  /// For many source times, make one ``PlaybackTicks`` and reuse it.
  ///
  /// - Throws: `MediaError` as ``PlaybackTicks`` does.
  public func ticks(
    ofSource time: Rational, timescale: Int32, rounding: TimeRounding
  ) throws(MediaError) -> Int64 {
    try PlaybackTicks(self, timescale: timescale).tick(at: time, rounding: rounding).ticks
  }
}
