// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension Composition {
  /// Returns a composition of only those parts that play the given source ranges.
  ///
  /// The composition must play the source once, forwards. Each part keeps its speeds. A frozen
  /// frame is kept if its instant lies in one of the ranges. If the instant is the end of the
  /// source, it is kept if a range reaches this end.
  ///
  /// A range boundary inside a ramp may have no exact composition time. It is then moved into the
  /// range, to the next multiple of 1/240000 s, or of 1/24000 s if the finer one does not fit a
  /// `MediaTime`.
  ///
  /// - Parameters:
  ///   - ranges: The source ranges in playback order. They may touch but not overlap.
  ///   - source: The source of the ranges.
  /// - Returns: The trimmed composition; this one is unchanged.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideSource`, `.overlappingRanges` (the message
  ///   names both ranges), or `.notExact`.
  public func trimmed(
    to ranges: [TimeRange], of source: MediaSource
  ) throws(MediaError) -> Composition {
    for range in ranges { try source.check(range) }
    try Self.checkApart(ranges, of: source)
    var trimmed = Composition()
    for range in ranges {
      let playedRange = try playedRange(of: range, of: source)
      try trimmed.insertTimeRange(playedRange, of: self, at: trimmed.duration)
    }
    return trimmed
  }

  /// Throws if any two ranges overlap.
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

  /// Returns the composition range in which a source range plays.
  private func playedRange(
    of range: TimeRange, of source: MediaSource
  ) throws(MediaError) -> TimeRange {
    let (start, end) = (range.start.seconds, range.end.seconds)
    let played = segments.compactMap { $0.source == source ? $0.mapping : nil }
    let first = played.first { mapping in
      mapping.motion == .hold ? mapping.sourceStart >= start : mapping.sourceEnd > start
    }
    let last = played.last { mapping in
      // A frozen last frame is stored with the end of the source as its instant. Source ranges
      // exclude their end, so no range contains this instant. The frame is kept if the range
      // reaches the end of the source.
      mapping.sourceStart < end || mapping.isReversed && mapping.sourceStart == end
    }
    guard let first, let last else {
      throw MediaError(
        .emptyRange, "the range \(range.displayText) of \(source.path) is not played",
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
  /// Returns the composition time at which a source time plays; the mapping must play forwards.
  ///
  /// The result is exact at constant speed. Inside a ramp it is rounded to a multiple of 1/240000 s
  /// or 1/24000 s.
  fileprivate func instant(
    ofSource time: Rational, rounding: TimeRounding
  ) throws(MediaError) -> MediaTime {
    if let line { return try MediaTime(line.targetSeconds(of: time)) }
    func rounded(_ timescale: Int32) throws(MediaError) -> MediaTime {
      let ticks = try ticks(ofSource: time, timescale: timescale, rounding: rounding)
      let instant = min(
        max(MediaTime(ticks, over: timescale), target.start), target.end)
      // The cut will need the source time at this instant. It is computed here already, because the
      // coarser tick must be tried if the computation overflows.
      _ = try sourceSeconds(of: instant.seconds)
      return instant
    }
    do throws(MediaError) { return try rounded(240_000) } catch { return try rounded(24_000) }
  }
}
