// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankRetiming

extension AudioSegment {
  /// Creates the audio segment of a composition segment; returns nil if the segment is silent.
  ///
  /// The source identifier is the index of the asset.
  init?(_ segment: TrackSegment, of assets: [Asset]) throws {
    guard let mapping = segment.mapping, mapping.motion != .hold,
      let id = assets.firstIndex(where: { $0.path == segment.source?.path })
    else { return nil }
    let isReversed = mapping.isReversed
    let end = try Self.end(of: assets[id])
    // The samples of a reversed source are numbered from its end, so its times are counted from the
    // end too.
    func range(_ start: Rational, _ stop: Rational) throws -> TimeRange {
      guard isReversed else { return try TimeRange(start: MediaTime(start), end: MediaTime(stop)) }
      let ends = try [start, stop].map { try Self.time(end - $0) }.sorted()
      return try TimeRange(start: ends[0], end: ends[1])
    }
    let source = Source(id: id, isReversed: isReversed)
    guard case .ramp(let ramp) = mapping.motion else {
      let line = try TimeMapping(
        source: range(mapping.sourceStart, mapping.sourceEnd), target: mapping.target)
      self.init(PlaybackMapping(line), of: source)
      return
    }
    let (whole, part) = (mapping.whole, mapping.part)
    self.init(
      try PlaybackMapping(
        partOf: isReversed ? ramp.reversed : ramp,
        source: range(whole.start.seconds, whole.end.seconds),
        from: isReversed ? 1 - part.upper : part.lower,
        to: isReversed ? 1 - part.lower : part.upper,
        isReversed: false, target: mapping.target),
      of: source)
  }

  /// Converts seconds to a time: exact if possible, else the nearest nanosecond.
  private static func time(_ seconds: Rational) throws -> MediaTime {
    if let exact = try? MediaTime(seconds) { return exact }
    let units = try (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
    return MediaTime(nanoseconds: Int64(clamping: units))
  }

  private static func end(of asset: Asset) throws -> Rational {
    guard let track = asset.audioTrack else { return .zero }
    return Rational(Int128(track.startSample + track.sampleCount), over: Int128(track.sampleRate))
  }
}
