// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore

/// The ticks in which the times of a passthrough export are told.
enum ExportTimescale {
  /// Whole ticks for 24 to 1000 fps and for all rates of n·1000/1001.
  private static let customary: Int128 = 240_000
  private static let largest: Int128 = 10_000_000

  /// A mapping, and a tick of its source in seconds.
  private struct Piece {
    let mapping: PlaybackMapping
    let tick: Rational
    let longestFrame: Rational
  }

  /// The least multiple of the sources' timescales in which all times are whole, made at least
  /// 240 000 by a whole factor; where that exceeds 10 000 000, 240 000 or the source's if that is
  /// finer.
  ///
  /// Of ramps only the ends count: no timescale holds the times between.
  static func choose(
    _ segments: [TrackSegment], _ paths: [String], _ tables: [FrameTable]
  ) throws -> Int32 {
    let longest = tables.map { table in
      Rational(
        Int128(max(1, table.entries.lazy.map(\.duration).max() ?? 0)), over: Int128(table.timescale)
      )
    }
    let pieces = segments.compactMap { segment -> Piece? in
      guard let mapping = segment.mapping,
        let source = paths.firstIndex(of: segment.source?.path ?? "")
      else { return nil }
      return Piece(
        mapping: mapping, tick: Rational(1, over: Int128(tables[source].timescale)),
        longestFrame: longest[source])
    }
    let limit = try limit(pieces)
    let finest = tables.map { Int128($0.timescale) }.max() ?? 1
    var common: Int128 = 1
    for seconds in try pieces.map(\.tick) + pieces.flatMap(times) {
      let seconds = try seconds.checked("a time of the export")
      let divisor = Int128(
        greatestCommonDivisor(common.magnitude, seconds.denominator.magnitude))
      let (product, overflow) = (common / divisor)
        .multipliedReportingOverflow(by: seconds.denominator)
      guard !overflow, product <= limit else {
        return Int32(clamping: min(limit, max(customary, finest)))
      }
      common = product
    }
    let scaled = common * max(1, (customary + common - 1) / common)
    return Int32(clamping: min(limit, scaled <= limit ? scaled : common))
  }

  /// What must be whole: the step of a tick of the source, and where its zero would lie, in each
  /// segment; and where the segments meet.
  private static func times(_ piece: Piece) throws -> [Rational] {
    let mapping = piece.mapping
    let ends = [mapping.target.start.seconds, mapping.target.end.seconds]
    guard mapping.motion == .constant, let speed = try mapping.meanSpeed() else { return ends }
    // A frame at tick k is shown at target.start + (k·tick − source.start)·stretch; backwards it
    // is as far from the target's end.
    let offset = mapping.sourceStart * speed.stretch
    let zero = mapping.isReversed ? ends[1] + offset : ends[0] - offset
    return [piece.tick * speed.stretch, zero] + ends
  }

  /// The finest ticks of which the longest frame still has fewer than 2^31, as movies store them.
  private static func limit(_ pieces: [Piece]) throws -> Int128 {
    var frame = Rational.zero
    var held = Rational.zero
    for piece in pieces {
      let target = piece.mapping.target
      if piece.mapping.motion == .hold {
        held += target.duration
        continue
      }
      // At either end a ramp is slowest, and no frame outlasts its segment.
      for end in [target.start, target.end] {
        let speed = try piece.mapping.speed(at: end.seconds)
        frame = max(frame, piece.longestFrame / speed.magnitude)
      }
    }
    let whole = max(1, try (frame + held).rounded(.towardPositiveInfinity))
    return max(1, min(largest, Int128(Int32.max) / whole))
  }
}
