// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension Composition {
  /// Returns a composition of only those parts that play the given source ranges.
  ///
  /// The composition must play the source once, forwards. Each part keeps its speeds. A frozen
  /// frame is kept if its source instant lies in one of the ranges. A frame frozen at the end of
  /// the source is kept if a range reaches this end.
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
      for playedRange in try playedRanges(of: range, of: source) {
        try trimmed.insertTimeRange(playedRange, of: self, at: trimmed.duration)
      }
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

  /// Returns the composition ranges in which a source range plays, in playback order.
  ///
  /// There are several ranges only if a part of the source range plays backwards.
  private func playedRanges(
    of range: TimeRange, of source: MediaSource
  ) throws(MediaError) -> [TimeRange] {
    var played: [TimeRange] = []
    try exactly("keeping \(range.displayText)") { () throws(MediaError) in
      for segment in segments where segment.source == source {
        guard let part = try segment.mapping?.playedRange(of: range) else { continue }
        if let last = played.last, last.end == part.start {
          played[played.count - 1] = try TimeRange(start: last.start, end: part.end)
        } else {
          played.append(part)
        }
      }
    }
    guard !played.isEmpty else {
      throw MediaError(
        .emptyRange, "the range \(range.displayText) of \(source.path) is not played",
        ranges: [range])
    }
    return played
  }
}

extension PlaybackMapping {
  /// Returns the composition range in which a part of this mapping plays; nil for none.
  fileprivate func playedRange(of range: TimeRange) throws(MediaError) -> TimeRange? {
    let (start, end) = (range.start.seconds, range.end.seconds)
    guard motion != .hold else {
      // A frozen last frame is stored with the end of the source as its instant. Source ranges
      // exclude their end, so no range contains this instant. The frame is kept if the range
      // reaches the end of the source.
      let isKept = sourceStart >= start && (sourceStart < end || isReversed && sourceStart == end)
      return isKept ? target : nil
    }
    guard sourceEnd > start, sourceStart < end else { return nil }
    let (begins, stops) =
      isReversed ? (sourceEnd > end, sourceStart < start) : (sourceStart < start, sourceEnd > end)
    let (first, last) = isReversed ? (end, start) : (start, end)
    return try TimeRange(
      start: begins ? instant(ofSource: first, rounding: .towardPositiveInfinity) : target.start,
      end: stops ? instant(ofSource: last, rounding: .towardNegativeInfinity) : target.end)
  }

  /// Returns the composition time at which a source time plays.
  ///
  /// The result is exact at constant speed. Inside a ramp it is rounded to a multiple of 1/240000 s
  /// or 1/24000 s.
  private func instant(
    ofSource time: Rational, rounding: TimeRounding
  ) throws(MediaError) -> MediaTime {
    if motion == .constant {
      let share = (time - sourceStart) / (sourceEnd - sourceStart)
      return try MediaTime(
        (isReversed ? 1 - share : share) * target.duration + target.start.seconds)
    }
    func rounded(_ timescale: Int32) throws(MediaError) -> MediaTime {
      let ticks = try ticks(ofSource: time, timescale: timescale, rounding: rounding)
      let instant = min(
        max(MediaTime(ticks, over: timescale), target.start), target.end)
      // Computes the source time that a cut at this instant will need. If this overflows, the
      // coarser timescale of 24000 is tried.
      _ = try sourceSeconds(of: instant.seconds)
      return instant
    }
    do throws(MediaError) { return try rounded(240_000) } catch { return try rounded(24_000) }
  }
}
