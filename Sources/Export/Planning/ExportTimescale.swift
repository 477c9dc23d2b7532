// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore

/// The choice of the timescale of a passthrough export.
enum ExportTimescale {
  /// With 240000 ticks per second, the frame period is a whole number of ticks at the usual rates
  /// from 24 to 1000 fps, and at their variants such as 30000/1001.
  private static let customary: Int128 = 240_000
  private static let largest: Int128 = 10_000_000

  /// A mapping with the source's tick and longest frame duration, both in seconds.
  private struct Piece {
    let mapping: PlaybackMapping
    let tick: Rational
    let longestFrame: Rational
  }

  /// Returns the smallest timescale of at least 240000 in which all times are whole ticks.
  ///
  /// If it is too large, the result is 240000, or the source's timescale if that is higher; times
  /// are then rounded. Inside a ramp only its ends are considered, because no timescale represents
  /// all times there.
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

  /// Returns the times that must be whole ticks, so that all frame times of the segment are whole
  /// ticks too.
  ///
  /// They are the duration of a source tick at the segment's speed, the composition time of source
  /// time zero, and the ends of the segment. For ramps and frozen frames, they are only the ends.
  private static func times(_ piece: Piece) throws -> [Rational] {
    let mapping = piece.mapping
    let ends = [mapping.target.start.seconds, mapping.target.end.seconds]
    guard mapping.motion == .constant, let speed = try mapping.meanSpeed() else { return ends }
    // Forwards, source tick k is shown at target.start + (k·tick − source.start)·stretch.
    // Backwards, it is shown at target.end − (k·tick − source.start)·stretch.
    let offset = mapping.sourceStart * speed.stretch
    let zero = mapping.isReversed ? ends[1] + offset : ends[0] - offset
    return [piece.tick * speed.stretch, zero] + ends
  }

  /// Returns the highest timescale in which the longest frame lasts fewer than 2^31 ticks, which is
  /// the limit of the file format.
  private static func limit(_ pieces: [Piece]) throws -> Int128 {
    var frame = Rational.zero
    var held = Rational.zero
    for piece in pieces {
      let target = piece.mapping.target
      if piece.mapping.motion == .hold {
        held += target.duration
        continue
      }
      // A frame lasts longest where the speed is lowest, and a ramp is slowest at one of its ends.
      for end in [target.start, target.end] {
        let speed = try piece.mapping.speed(at: end.seconds)
        frame = max(frame, piece.longestFrame / speed.magnitude)
      }
    }
    let whole = max(1, try (frame + held).rounded(.towardPositiveInfinity))
    return max(1, min(largest, Int128(Int32.max) / whole))
  }
}
