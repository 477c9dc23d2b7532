// SPDX-License-Identifier: Apache-2.0

public import MediaTiming

extension Composition {
  /// Makes a composition that plays a whole source, some ranges of it at other speeds.
  ///
  /// What lies outside every range keeps speed 1.
  ///
  /// - Parameters:
  ///   - source: What is played.
  ///   - changes: Ranges in the time of the source, in any order, each with the speed at which
  ///     it plays. They may touch, but not overlap.
  /// - Returns: The composition; its duration is exact, 11 s for 4 s of which one plays at 1/8.
  /// - Throws: `EditingError` with `.emptyRange`, `.outsideSource`, `.overlappingRanges` (which
  ///   names both), or `.notExact` when a boundary does not fit a `MediaTime`.
  public static func retimed(
    _ source: MediaSource, changes: [(range: TimeRange, speed: Speed)]
  ) throws(EditingError) -> Composition {
    for change in changes { try source.check(change.range) }
    let ordered = changes.sorted { $0.range.start < $1.range.start }
    for (first, second) in zip(ordered, ordered.dropFirst())
    where first.range.overlaps(second.range) {
      throw EditingError(
        .overlappingRanges,
        "the ranges \(first.range.secondsText) and \(second.range.secondsText) of \(source.path) overlap",
        ranges: [first.range, second.range])
    }
    var composition = Composition(source)
    // From the last to the first: what lies before a range still plays at its source time.
    for (range, speed) in ordered.reversed() {
      let duration = try exactly("playing \(range.secondsText) at speed \(speed)") {
        () throws(TimingError) in
        try MediaTime(range.durationInSeconds.divided(by: speed.fraction))
      }
      try composition.scaleTimeRange(range, toDuration: duration)
    }
    return composition
  }
}
