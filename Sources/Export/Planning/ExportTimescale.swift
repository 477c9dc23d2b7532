// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore

/// Chooses the timescale of a passthrough export.
enum ExportTimescale {
  /// With 240000 ticks per second, the frame period is a whole number of ticks at the usual rates
  /// from 24 to 1000 fps, and at variants of these rates such as 30000/1001.
  private static let customary: Int128 = 240_000
  private static let largest: Int128 = 10_000_000

  /// A mapping of source time to composition time, with the tick and the longest frame duration of
  /// the source, both in seconds.
  private struct Piece {
    let mapping: PlaybackMapping
    let tick: Rational
    let longestFrame: Rational
  }

  /// Returns the smallest timescale of at least 240000 in which all times are whole ticks.
  ///
  /// If that timescale is too large, times are rounded, and the result is 240000 or the source's
  /// timescale, whichever is higher. In a ramp, only the times of the two ends are considered,
  /// because no timescale represents all times between them.
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

  /// Returns the times in seconds that must be whole ticks, so that all frame times of a segment
  /// are whole ticks.
  ///
  /// At constant speed, these are the duration of a source tick in the composition, the composition
  /// time of source time zero, and the two ends of the segment. For ramps and frozen frames, these
  /// are only the two ends.
  private static func times(_ piece: Piece) throws -> [Rational] {
    let mapping = piece.mapping
    let ends = [mapping.target.start.seconds, mapping.target.end.seconds]
    guard mapping.motion == .constant, let speed = try mapping.meanSpeed() else { return ends }
    // In forward playback, source tick k is shown at target.start + (k·tick −
    // source.start)·stretch. In reverse playback, it is shown at target.end − (k·tick −
    // source.start)·stretch.
    let offset = mapping.sourceStart * speed.stretch
    let zero = mapping.isReversed ? ends[1] + offset : ends[0] - offset
    return [piece.tick * speed.stretch, zero] + ends
  }

  /// Returns the highest timescale at which the longest frame lasts fewer than 2^31 ticks.
  ///
  /// This is the limit of the file format.
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
