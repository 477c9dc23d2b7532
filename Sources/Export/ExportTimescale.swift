// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import MediaTiming

/// The ticks in which the times of a passthrough export are told.
enum ExportTimescale {
  /// Whole ticks for 24 to 1000 fps and for all rates of n·1000/1001.
  private static let customary: Int128 = 240_000
  private static let largest: Int128 = 10_000_000

  /// The least multiple of the source's timescale in which all times are whole, made at least
  /// 240 000 by a whole factor; where that exceeds 10 000 000, 240 000 or the source's if that is
  /// finer.
  static func choose(_ composition: Composition, _ table: FrameTable) throws -> Int32 {
    let limit = try limit(composition, table)
    var common = Int128(table.timescale)
    for seconds in try times(composition, table) {
      let divisor = greatestCommonDivisor(common, seconds.denominator)
      let (product, overflow) = (common / divisor)
        .multipliedReportingOverflow(by: seconds.denominator)
      guard !overflow, product <= limit else {
        return Int32(clamping: min(limit, max(customary, Int128(table.timescale))))
      }
      common = product
    }
    let scaled = common * max(1, (customary + common - 1) / common)
    return Int32(clamping: min(limit, scaled <= limit ? scaled : common))
  }

  /// What must be whole: the step of a tick of the source, and where its zero would lie, in each
  /// segment; and where the segments meet.
  private static func times(
    _ composition: Composition, _ table: FrameTable
  ) throws -> [Rational] {
    let tick = try Rational(1, Int128(table.timescale))
    return try composition.segments.compactMap(\.mapping).flatMap { mapping in
      let stretch = try stretch(mapping)
      // A frame at tick k is shown at target.start + (k·tick − source.start)·stretch.
      let zero = try mapping.target.start.seconds
        .subtracting(mapping.source.start.seconds.multiplied(by: stretch))
      return [
        try tick.multiplied(by: stretch), zero, mapping.target.start.seconds,
        mapping.target.end.seconds,
      ]
    }
  }

  /// The finest ticks of which the longest frame still has fewer than 2^31, as movies store them.
  private static func limit(_ composition: Composition, _ table: FrameTable) throws -> Int128 {
    let longest = table.entries.lazy.map(\.duration).max() ?? 0
    let frame = try Rational(Int128(max(1, longest)), Int128(table.timescale))
    var seconds = Rational.zero
    for mapping in composition.segments.compactMap(\.mapping) {
      seconds = max(seconds, try frame.multiplied(by: stretch(mapping)))
    }
    let whole = max(1, seconds.rounded(.towardPositiveInfinity))
    return max(1, min(largest, Int128(Int32.max) / whole))
  }

  private static func stretch(_ mapping: TimeMapping) throws -> Rational {
    try mapping.target.durationInSeconds.divided(by: mapping.source.durationInSeconds)
  }

  private static func greatestCommonDivisor(_ first: Int128, _ second: Int128) -> Int128 {
    var (a, b) = (first, second)
    while b != 0 { (a, b) = (b, a % b) }
    return a
  }
}
