// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore

/// The chapters of the sources, mapped to composition time.
struct ChapterMap {
  /// A chapter of the output, in ticks.
  struct MappedChapter: Equatable {
    let title: String
    let start: Int64
    var end: Int64
  }

  /// Ticks per second.
  let timescale: Int32
  /// The chapters in ascending order, without overlap.
  private(set) var chapters: [MappedChapter] = []
  /// Descriptions of chapters that could not be kept.
  private(set) var lost: [String] = []

  /// Maps each chapter to every range of the composition that plays part of it.
  ///
  /// Without a track, nothing is mapped.
  init(_ track: CompositionTrack?, _ assets: [Asset], timescale: Int32) throws {
    /// A chapter, or a part of it, as played by one segment.
    ///
    /// Consecutive parts of the same chapter are joined later.
    struct Piece {
      let source: (asset: Int, chapter: Int)
      var chapter: MappedChapter
    }
    self.timescale = timescale
    guard let track, assets.contains(where: { !$0.chapters.isEmpty }) else { return }
    var pieces: [Piece] = []
    for segment in track.segments {
      guard let mapping = segment.mapping,
        let position = assets.firstIndex(where: { $0.path == segment.source?.path })
      else { continue }
      var found: [Piece] = []
      for (number, chapter) in try Self.chapters(of: assets[position]).enumerated() {
        guard let ticks = try Self.ticks(of: chapter, in: mapping, timescale) else { continue }
        found.append(
          Piece(
            source: (position, number),
            chapter: MappedChapter(
              title: chapter.title, start: ticks.lowerBound, end: ticks.upperBound)))
      }
      pieces += found.sorted {
        ($0.chapter.start, $0.chapter.end) < ($1.chapter.start, $1.chapter.end)
      }
    }
    var merged: [Piece] = []
    for piece in pieces {
      if let last = merged.last, last.source == piece.source,
        last.chapter.end == piece.chapter.start
      {
        merged[merged.count - 1].chapter.end = piece.chapter.end
      } else {
        merged.append(piece)
      }
    }
    for chapter in merged.map(\.chapter) {
      // Containers and players support neither nested chapters nor chapters of zero duration, so
      // these are reported as lost.
      guard chapter.end > chapter.start, chapter.start >= chapters.last?.end ?? .min else {
        lost.append("chapter \(chapter.title)")
        continue
      }
      chapters.append(chapter)
    }
  }

  /// Returns an asset's chapters relative to its first frame.
  private static func chapters(of asset: Asset) throws -> [Chapter] {
    guard let video = asset.videoTrack else { return [] }
    let ticks = Rational(video.frames.originTicks)
    let origin = try (ticks * video.format.timeBase).checked("the origin of \(asset.path)")
    let end = asset.duration.seconds
    return try asset.chapters.map { chapter in
      let name = "the chapter \(chapter.title)"
      return Chapter(
        title: chapter.title, start: max(0, try (chapter.start - origin).checked(name)),
        end: min(end, try (chapter.end - origin).checked(name)))
    }
  }

  /// Returns the range in which a mapping plays part of a chapter, or nil.
  private static func ticks(
    of chapter: Chapter, in mapping: PlaybackMapping,
    _ timescale: Int32
  ) throws -> Range<Int64>? {
    let target = mapping.target
    if mapping.motion == .hold {
      let time = mapping.sourceStart
      let holds =
        mapping.isReversed
        ? chapter.start < time && time <= chapter.end : chapter.start <= time && time < chapter.end
      return holds
        ? try tick(target.start.seconds, timescale)..<tick(target.end.seconds, timescale) : nil
    }
    let start = max(chapter.start, mapping.sourceStart)
    let end = min(chapter.end, mapping.sourceEnd)
    guard start < end else { return nil }
    let ticks = try [start, end].map {
      try mapping.ticks(ofSource: $0, timescale: timescale, rounding: .halfAwayFromZero)
    }
    return min(ticks[0], ticks[1])..<max(ticks[0], ticks[1])
  }

  private static func tick(_ seconds: Rational, _ timescale: Int32) throws -> Int64 {
    let ticks = try (seconds * Rational(Int64(timescale))).rounded(.halfAwayFromZero)
    return Int64(clamping: ticks)
  }
}
