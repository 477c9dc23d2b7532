// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension Composition {
  /// The parts of a composition that play ranges of a source, one after the other.
  ///
  /// The composition plays the source once and forwards; each part plays what it played there, at
  /// the same speeds. An instant that is held belongs to the range that it lies in, and one at the
  /// end of the source to the range that reaches this end.
  ///
  /// A start or an end inside a ramp, whose place need be no fraction, is rounded into the range, by
  /// less than a tick of 1/240000 s (of 1/24000 s where that cannot be said exactly).
  ///
  /// - Parameters:
  ///   - ranges: In the time of the source, in the order in which they are to play. They may touch,
  ///     but not overlap.
  ///   - source: The source.
  /// - Returns: The composition; this one is unchanged.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideSource`, `.overlappingRanges` (which
  ///   names both), or `.notExact`.
  public func trimmed(
    to ranges: [TimeRange], of source: MediaSource
  ) throws(MediaError) -> Composition {
    for range in ranges { try source.check(range) }
    try Self.checkApart(ranges, of: source)
    var trimmed = Composition()
    for range in ranges {
      let place = try place(of: range, of: source)
      try trimmed.insertTimeRange(place, of: self, at: trimmed.duration)
    }
    return trimmed
  }

  /// Throws unless no instant lies in two of the ranges.
  static func checkApart(
    _ ranges: [TimeRange], of source: MediaSource
  ) throws(MediaError) {
    let ordered = ranges.sorted { $0.start < $1.start }
    for (first, second) in zip(ordered, ordered.dropFirst()) where first.overlaps(second) {
      throw MediaError(
        .overlappingRanges,
        "the ranges \(first.displayText) and \(second.displayText) of \(source.path) overlap",
        ranges: [first, second])
    }
  }

  /// Where a range of a source plays, in the time of the composition.
  private func place(
    of range: TimeRange, of source: MediaSource
  ) throws(MediaError) -> TimeRange {
    let (start, end) = (range.start.seconds, range.end.seconds)
    let played = segments.compactMap { $0.source == source ? $0.mapping : nil }
    let first = played.first { mapping in
      mapping.motion == .hold ? mapping.sourceStart >= start : mapping.sourceEnd > start
    }
    let last = played.last { mapping in
      // What is on just before an instant is held, where the source ends.
      mapping.sourceStart < end || mapping.isReversed && mapping.sourceStart == end
    }
    guard let first, let last else {
      throw MediaError(
        .emptyRange, "nothing plays the range \(range.displayText) of \(source.path)",
        ranges: [range])
    }
    return try exactly("keeping \(range.displayText)") { () throws(MediaError) in
      try TimeRange(
        start: first.sourceStart < start
          ? first.instant(ofSource: start, rounding: .towardPositiveInfinity) : first.target.start,
        end: last.sourceEnd > end
          ? last.instant(ofSource: end, rounding: .towardNegativeInfinity) : last.target.end)
    }
  }
}

extension PlaybackMapping {
  /// The instant at which a source time inside plays, forwards: exact at one speed, and rounded to a
  /// tick in a ramp.
  fileprivate func instant(
    ofSource time: Rational, rounding: TimeRounding
  ) throws(MediaError) -> MediaTime {
    if let line { return try MediaTime(line.targetSeconds(of: time)) }
    func rounded(_ timescale: Int32) throws(MediaError) -> MediaTime {
      let ticks = try ticks(ofSource: time, timescale: timescale, rounding: rounding)
      let instant = min(
        max(MediaTime(ticks, over: timescale), target.start), target.end)
      // What is cut there must have a source time that fits.
      _ = try sourceSeconds(of: instant.seconds)
      return instant
    }
    do throws(MediaError) { return try rounded(240_000) } catch { return try rounded(24_000) }
  }
}
