// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore

/// Where the chapters of the sources come to lie in a composition.
struct ChapterMap {
  /// A chapter of the result, in ticks.
  struct PlacedChapter: Equatable {
    let title: String
    let start: Int64
    var end: Int64
  }

  /// Ticks per second.
  let timescale: Int32
  /// In ascending order; they do not overlap.
  private(set) var chapters: [PlacedChapter] = []
  /// What could not be kept, in words.
  private(set) var lost: [String] = []

  /// Moves each chapter by the map that moves the pictures: what of it is played, where and as
  /// often as it is played.
  init(_ track: CompositionTrack, _ assets: [Asset], timescale: Int32) throws {
    /// A piece of a source's chapter, to tell one that goes on from one that comes again.
    struct Piece {
      let source: (asset: Int, chapter: Int)
      var chapter: PlacedChapter
    }
    self.timescale = timescale
    guard assets.contains(where: { !$0.chapters.isEmpty }) else { return }
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
            chapter: PlacedChapter(
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
      // Players and formats know no chapter inside another, and none that lasts no time.
      guard chapter.end > chapter.start, chapter.start >= chapters.last?.end ?? .min else {
        lost.append("chapter \(chapter.title)")
        continue
      }
      chapters.append(chapter)
    }
  }

  /// A file's chapters in the time of its asset, whose zero is the first picture.
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

  /// Where a mapping plays something of a chapter; nil where it does not.
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
