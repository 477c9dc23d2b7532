// SPDX-License-Identifier: Apache-2.0

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
}
