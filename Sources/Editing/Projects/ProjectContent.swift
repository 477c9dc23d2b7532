// SPDX-License-Identifier: Apache-2.0

import Algorithms
import OvercrankMediaCore

/// A clip of a project before its media is looked up.
///
/// Media is looked up only for clips that can be seen or heard in the result. The files of other
/// clips may be missing.
struct ProjectClip {
  /// The path of the file as written in the project.
  var path: String
  /// A description of where the clip stands in the project, for messages.
  var location: String
  /// The exact mapping from the clip's own time to the time of its media; its target range starts
  /// at zero.
  ///
  /// Only projects that this library wrote have one. Nil if the clip's own time is the time of its
  /// media.
  var exact: PlaybackMapping?
}

/// The content of a project item, in its own time from zero.
///
/// Readers of all formats produce this type. It consists of consecutive pieces, each with a linear
/// map from the item's time to a clip's own time. To trim, retime or stack items, only these maps
/// are changed.
struct ProjectContent {
  /// A time range that shows one clip at constant speed, a frozen frame of it, or nothing.
  struct Piece {
    var start: Rational
    var end: Rational
    var shown: Shown?
  }

  /// A clip, and the clip's own times at the start and the end of a piece.
  ///
  /// The times are equal for a frozen frame.
  struct Shown {
    var clip: ProjectClip
    var from: Rational
    var to: Rational
  }

  /// A linear part of a curve: a range of an item's time, and the content's times at its start and
  /// end.
  struct CurvePart {
    var start: Rational
    var end: Rational
    var from: Rational
    var to: Rational

    /// Throws if one of the times has overflowed.
    func check() throws(MediaError) {
      for time in [start, end, from, to] { _ = try time.checked("a time of the project") }
    }
  }

  private(set) var pieces: [Piece] = []

  var duration: Rational { pieces.last?.end ?? .zero }

  var showsAnything: Bool { pieces.contains { $0.shown != nil } }

  init() {}

  /// Creates empty content of a duration.
  init(emptyFor duration: Rational) throws(MediaError) {
    if try duration.checked("a length in the project") > .zero {
      pieces = [Piece(start: .zero, end: duration, shown: nil)]
    }
  }

  /// Creates content that plays a clip along a curve.
  init(_ clip: ProjectClip, along curve: [CurvePart]) throws(MediaError) {
    for part in curve { try part.check() }
    for part in curve where part.start < part.end {
      pieces.append(
        Piece(
          start: part.start, end: part.end, shown: Shown(clip: clip, from: part.from, to: part.to))
      )
    }
  }

  /// Appends other content at the end.
  mutating func append(_ other: ProjectContent) throws(MediaError) {
    let end = duration
    for piece in other.pieces {
      pieces.append(
        Piece(
          start: try (piece.start + end).checked("a time of the project"),
          end: try (piece.end + end).checked("a time of the project"), shown: piece.shown))
    }
  }

  /// Returns this content, extended with empty time up to a time.
  func padded(upTo time: Rational) throws(MediaError) -> ProjectContent {
    var padded = self
    let time = try time.checked("a time of the project")
    if time > duration { padded.pieces.append(Piece(start: duration, end: time, shown: nil)) }
    return padded
  }

  /// Returns this content retimed by a curve; parts of the curve outside the content are empty.
  func played(along curve: [CurvePart]) throws(MediaError) -> ProjectContent {
    var played = ProjectContent()
    for part in curve { try part.check() }
    for part in curve where part.start < part.end {
      played.pieces += try window(part)
    }
    return played
  }

  /// Whether other content on top of this content hides all that it shows.
  func isHidden(below top: ProjectContent) throws(MediaError) -> Bool {
    let top = try top.padded(upTo: duration)
    for piece in pieces where piece.shown != nil {
      let above = try top.window(
        CurvePart(start: piece.start, end: piece.end, from: piece.start, to: piece.end))
      if above.contains(where: { $0.shown == nil }) { return false }
    }
    return true
  }

  /// Stacks layers; the last layer is on top.
  ///
  /// Empty parts show the layer below.
  static func stacked(_ layers: [ProjectContent]) throws(MediaError) -> ProjectContent {
    guard let top = layers.last else { return ProjectContent() }
    let end = layers.map(\.duration).max() ?? .zero
    var seen = layers.count == 1 ? top : try top.padded(upTo: end)
    for layer in layers.dropLast().reversed() where layer.showsAnything {
      var merged: [Piece] = []
      for piece in seen.pieces {
        guard piece.shown == nil else {
          merged.append(piece)
          continue
        }
        let below = try layer.window(
          CurvePart(start: piece.start, end: piece.end, from: piece.start, to: piece.end))
        for part in below {
          if part.shown == nil, let last = merged.last, last.shown == nil {
            merged[merged.count - 1].end = part.end
          } else {
            merged.append(part)
          }
        }
      }
      seen.pieces = merged
    }
    return seen
  }

  /// Returns the pieces that a part of a curve plays: the content from `part.from` to `part.to`,
  /// mapped to the range of the part.
  ///
  /// The content plays forwards or backwards, or is frozen. The result covers the whole range of
  /// the part.
  private func window(_ part: CurvePart) throws(MediaError) -> [Piece] {
    guard part.from != part.to else {
      let held = piece(at: part.from)
      var shown = held?.shown
      if let held, let line = shown {
        let instant = try Self.time(of: held, line, at: part.from)
        shown = Shown(clip: line.clip, from: instant, to: instant)
      }
      return [Piece(start: part.start, end: part.end, shown: shown)]
    }
    let scale = (part.end - part.start) / (part.to - part.from)
    func location(_ time: Rational) throws(MediaError) -> Rational {
      if time == part.from { return part.start }
      if time == part.to { return part.end }
      return try ((time - part.from) * scale + part.start).checked("a time of the project")
    }
    let (low, high) = (min(part.from, part.to), max(part.from, part.to))
    let isForward = part.from < part.to
    var found: [Piece] = []
    var covered = low
    func add(_ start: Rational, _ end: Rational, _ shown: Shown?) throws(MediaError) {
      guard start < end else { return }
      let ends = (try location(start), try location(end))
      var rotated = shown
      if let shown, !isForward {
        rotated = Shown(clip: shown.clip, from: shown.to, to: shown.from)
      }
      found.append(
        Piece(
          start: isForward ? ends.0 : ends.1, end: isForward ? ends.1 : ends.0, shown: rotated))
      covered = end
    }
    if low < .zero { try add(low, min(high, .zero), nil) }
    for piece in pieces[firstIndex(after: low)...] {
      guard piece.start < high else { break }
      let (start, end) = (max(piece.start, low), min(piece.end, high))
      var shown = piece.shown
      if let line = shown {
        shown = Shown(
          clip: line.clip, from: try Self.time(of: piece, line, at: start),
          to: try Self.time(of: piece, line, at: end))
      }
      try add(start, end, shown)
    }
    if covered < high { try add(covered, high, nil) }
    return isForward ? found : found.reversed()
  }

  /// Returns the index of the first piece that ends after a time.
  private func firstIndex(after time: Rational) -> Int {
    pieces.partitioningIndex { $0.end > time }
  }

  private func piece(at time: Rational) -> Piece? {
    let index = firstIndex(after: time)
    guard index < pieces.count, pieces[index].start <= time else { return nil }
    return pieces[index]
  }

  /// Returns the clip's own time at an instant of a piece.
  private static func time(
    of piece: Piece, _ line: Shown, at time: Rational
  ) throws(MediaError) -> Rational {
    if time == piece.start { return line.from }
    if time == piece.end { return line.to }
    let share = (time - piece.start) / (piece.end - piece.start)
    return try ((line.to - line.from) * share + line.from).checked("a time of the project")
  }

  /// Stacks layers; a later layer covers the earlier ones.
  ///
  /// A layer that starts at or after the end of the previous one is appended to it. An edit list
  /// with thousands of events therefore does not become thousands of layers.
  static func inSequence(_ layers: [ProjectContent]) throws(MediaError) -> ProjectContent {
    var rows: [ProjectContent] = []
    for layer in layers {
      guard let start = layer.pieces.first(where: { $0.shown != nil })?.start else {
        rows.append(layer)
        continue
      }
      if var row = rows.last, row.duration <= start {
        row = try row.padded(upTo: start)
        row.pieces += layer.pieces.filter { $0.start >= start }
        rows[rows.count - 1] = row
      } else {
        rows.append(layer)
      }
    }
    return try stacked(rows)
  }
}
