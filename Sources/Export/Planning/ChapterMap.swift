// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore

/// The chapters of the output: the chapters of the sources in composition time, and the markers of
/// the composition.
struct ChapterMap {
  /// A chapter of the output.
  ///
  /// Its times are in ticks.
  struct MappedChapter: Equatable {
    let title: String
    let start: Int64
    var end: Int64
  }

  /// The number of ticks per second in the times of chapters.
  let timescale: Int32
  /// The chapters of the output in ascending order, without overlap.
  private(set) var chapters: [MappedChapter] = []
  /// Descriptions of chapters and markers that could not be kept.
  private(set) var lost: [String] = []

  /// Maps each chapter to every range of the composition that plays part of it, and adds a chapter
  /// for each marker.
  ///
  /// Without a video track, the map is empty.
  init(
    _ track: CompositionTrack?, _ assets: [Asset], markers: [CompositionMarker], timescale: Int32
  ) throws {
    self.timescale = timescale
    guard let track else { return }
    try map(track, assets)
    try add(markers, end: MappedRange.tick(track.duration.seconds, timescale))
    // A movie stores no gap before the first chapter, so players would show that chapter from time
    // zero. A chapter without a title fills the gap.
    if let first = chapters.first, first.start > 0 {
      chapters.insert(MappedChapter(title: "", start: 0, end: first.start), at: 0)
    }
  }

  private mutating func map(_ track: CompositionTrack, _ assets: [Asset]) throws {
    /// The part of a chapter that one segment plays.
    ///
    /// Consecutive parts of the same chapter are joined later.
    struct Piece {
      let source: (asset: Int, chapter: Int)
      var chapter: MappedChapter
    }
    guard assets.contains(where: { !$0.chapters.isEmpty }) else { return }
    var pieces: [Piece] = []
    for segment in track.segments {
      guard let mapping = segment.mapping,
        let position = assets.firstIndex(where: { $0.path == segment.source?.path })
      else { continue }
      let range = try MappedRange(mapping, timescale: timescale)
      var found: [Piece] = []
      for (number, chapter) in try Self.chapters(of: assets[position]).enumerated() {
        guard let ticks = try range.ticks(from: chapter.start, to: chapter.end) else { continue }
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
      // such chapters are reported as lost.
      guard chapter.end > chapter.start, chapter.start >= chapters.last?.end ?? .min else {
        lost.append("chapter \(chapter.title)")
        continue
      }
      chapters.append(chapter)
    }
  }

  /// Adds the markers of the composition as chapters.
  ///
  /// A chapter has a duration, so a marker lasts until the next chapter or the end of the movie. A
  /// chapter that contains the start of a marker ends at that start.
  private mutating func add(_ markers: [CompositionMarker], end: Int64) throws {
    for marker in markers.sorted(by: { $0.range.start < $1.range.start }) {
      let start = try MappedRange.tick(marker.range.start.seconds, timescale)
      // The first chapter that starts at or after the marker.
      let next = chapters.firstIndex { $0.start >= start } ?? chapters.count
      // A chapter with the marker's start and title already marks its position.
      if next < chapters.count, chapters[next].start == start, chapters[next].title == marker.name {
        continue
      }
      guard !marker.name.isEmpty, start >= 0, start < end,
        next == chapters.count || chapters[next].start > start
      else {
        lost.append("marker \(marker.name)")
        continue
      }
      if next > 0 { chapters[next - 1].end = min(chapters[next - 1].end, start) }
      let last = next < chapters.count ? chapters[next].start : end
      chapters.insert(MappedChapter(title: marker.name, start: start, end: last), at: next)
    }
  }

  /// Returns the chapters of an asset, with times relative to the first frame.
  private static func chapters(of asset: Asset) throws -> [Chapter] {
    guard let video = asset.videoTrack else { return [] }
    let origin = try video.origin.checked("the origin of \(asset.path)")
    let end = asset.duration.seconds
    return try asset.chapters.map { chapter in
      let name = "the chapter \(chapter.title)"
      return Chapter(
        title: chapter.title, start: max(0, try (chapter.start - origin).checked(name)),
        end: min(end, try (chapter.end - origin).checked(name)))
    }
  }
}
