// SPDX-License-Identifier: Apache-2.0

extension PlaybackMapping {
  /// Makes a part of a ramp, as ``split(at:)`` leaves it.
  ///
  /// - Throws: `MediaError` with `.emptyRange` for an empty range or part, `.overflow` for
  ///   numbers that do not fit, `.outsideSource` for a part that is not inside the ramp.
  package init(
    partOf ramp: SpeedRamp, source: TimeRange, from lower: Rational, to upper: Rational,
    isReversed: Bool, target: TimeRange
  ) throws(MediaError) {
    guard lower >= .zero, upper <= .one, !source.isEmpty else {
      throw MediaError(.outsideSource, "a part from \(lower) to \(upper) of a ramp")
    }
    guard lower < upper else { throw MediaError(.emptyRange, "an empty part of a ramp") }
    try self.init(
      .ramp(ramp), isReversed: isReversed, whole: source, part: Part(lower: lower, upper: upper),
      target: target)
  }

  /// Mappings at one speed each that follow a ramp, for what can do no other; anything else is
  /// itself.
  ///
  /// Their ends lie on the ramp, to the nanosecond; between them they are off by the square of
  /// their length.
  ///
  /// - Parameters:
  ///   - perSecond: How many there are in a second of the output.
  ///   - least: How many there are at the least.
  /// - Returns: The mappings, whose targets follow each other.
  /// - Throws: `MediaError` with `.overflow` when a time does not fit.
  package func linearPieces(
    perSecond: Int64, atLeast least: Int64
  ) throws(MediaError) -> [PlaybackMapping] {
    guard case .ramp = motion else { return [self] }
    let length = target.duration
    let wanted = try (length * Rational(perSecond)).rounded(.towardPositiveInfinity)
    let count = max(least, min(Self.mostPieces, Int64(clamping: wanted)))
    var ends: [(target: MediaTime, source: MediaTime)] = []
    for number in 0...count {
      let share = Rational(Int128(number), over: Int128(count))
      var time = number == 0 ? target.start : target.end
      if number > 0, number < count {
        time = try Self.nanoseconds(length * share + target.start.seconds)
      }
      let played = try source(after: share)
      // A ramp of some nanoseconds has fewer pieces; its end is kept in any case.
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

  /// The source time after a share of the target: exact where it is a time, else the nanosecond
  /// at or before it.
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
    // The polynomial of a long fraction may fit nothing; to compare it takes no more than time.
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

  /// Ten minutes of 25 a second; a longer ramp has longer pieces.
  private static let mostPieces: Int64 = 15_000

  private static func nanoseconds(_ seconds: Rational) throws(MediaError) -> MediaTime {
    let units = try (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
    guard let value = Int64(exactly: units) else {
      throw .overflow("the time \(seconds.exactDisplayText)")
    }
    return MediaTime(nanoseconds: value)
  }
}
