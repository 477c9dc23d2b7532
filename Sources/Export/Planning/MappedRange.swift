// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Maps ranges of source time to ticks of the output, for one mapping of a composition.
struct MappedRange {
  let mapping: PlaybackMapping
  let timescale: Int32
  private let ticks: PlaybackTicks

  init(_ mapping: PlaybackMapping, timescale: Int32) throws(MediaError) {
    (self.mapping, self.timescale) = (mapping, timescale)
    ticks = try PlaybackTicks(mapping, timescale: timescale)
  }

  /// The time range in which the mapping plays a part of a source range, in ticks.
  ///
  /// Nil if it plays no part. A hold plays the range that contains its instant.
  func ticks(from start: Rational, to end: Rational) throws(MediaError) -> Range<Int64>? {
    let target = mapping.target
    if mapping.motion == .hold {
      let time = mapping.sourceStart
      let holds = mapping.isReversed ? start < time && time <= end : start <= time && time < end
      return holds
        ? try Self.tick(target.start.seconds, timescale)..<Self.tick(target.end.seconds, timescale)
        : nil
    }
    let first = max(start, mapping.sourceStart)
    let last = min(end, mapping.sourceEnd)
    guard first < last else { return nil }
    let ends = try (
      ticks.tick(at: first, rounding: .halfAwayFromZero).ticks,
      ticks.tick(at: last, rounding: .halfAwayFromZero).ticks
    )
    return min(ends.0, ends.1)..<max(ends.0, ends.1)
  }

  /// The tick nearest to a time in seconds.
  static func tick(_ seconds: Rational, _ timescale: Int32) throws(MediaError) -> Int64 {
    let ticks = try (seconds * Rational(Int64(timescale))).rounded(.halfAwayFromZero)
    return Int64(clamping: ticks)
  }
}
