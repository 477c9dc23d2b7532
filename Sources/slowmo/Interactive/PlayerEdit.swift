// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The speeds and marks that the keys of `play` add to a clip or a project.
///
/// Ranges and marks are stored in base time, the time of the content before the edits. So a later
/// change of speed does not move them. Ranges never overlap: a new range replaces the parts of
/// others that it covers.
struct PlayerEdit {
  /// The content before the edits.
  let base: Composition
  /// The speeds in ascending order, in times of the content before the edits.
  private(set) var changes: [Composition.SpeedChange] = []
  /// The marks, in times of the content before the edits.
  private(set) var marks: [CompositionMarker]
  /// The range to which the next speed applies; nil for the whole content.
  private(set) var range: TimeRange?
  /// The start of the range; nil until it is set.
  private var rangeStart: MediaTime?

  init(_ base: Composition, marks: [CompositionMarker]) {
    (self.base, self.marks) = (base, marks)
  }

  // MARK: Time

  /// Returns the base time, a time in the content before the edits, that corresponds to a time in
  /// the edited composition.
  func baseTime(of time: Rational) -> Rational {
    var (baseStart, start) = (Rational.zero, Rational.zero)
    for change in changes {
      let gap = change.range.start.seconds - baseStart
      if time < start + gap { break }
      (baseStart, start) = (change.range.start.seconds, start + gap)
      let length = change.range.duration * change.speed.stretch
      if time < start + length { return baseStart + (time - start) * change.speed.fraction }
      (baseStart, start) = (change.range.end.seconds, start + length)
    }
    return baseStart + time - start
  }

  /// Returns the time in the edited composition that corresponds to a base time, a time in the
  /// content before the edits.
  func editedTime(of time: Rational) -> Rational {
    changes.reduce(time) { edited, change in
      let inside = min(max(.zero, time - change.range.start.seconds), change.range.duration)
      return edited + inside * change.speed.stretch - inside
    }
  }

  /// The edited composition with its marks.
  ///
  /// - Throws: `MediaError` with `.notExact` for a time that no `MediaTime` represents.
  func composition() throws(MediaError) -> Composition {
    var edited = base
    // A change of speed moves all later content, so the changes are applied from the last to the
    // first.
    for change in changes.reversed() { try edited.setSpeed(change.speed, in: change.range) }
    edited.markers = []
    for mark in marks {
      let start = try MediaTime(editedTime(of: mark.range.start.seconds))
      let end = try MediaTime(editedTime(of: mark.range.end.seconds))
      edited.markers.append(
        CompositionMarker(
          mark.name, try TimeRange(start: start, end: end), color: mark.color,
          comment: mark.comment))
    }
    return edited
  }

  // MARK: Edits

  /// Sets the start of the range to a time in the content before the edits.
  mutating func beginRange(at time: MediaTime) {
    rangeStart = time
    range = nil
  }

  /// Sets the end of the range to a time in the content before the edits.
  ///
  /// The end may be before the start; both are then exchanged. Without a start, the range begins at
  /// the start of the content.
  ///
  /// - Returns: The range; nil if it is empty.
  mutating func endRange(at time: MediaTime) throws(MediaError) -> TimeRange? {
    let start = rangeStart ?? .zero
    guard time != start else { return nil }
    range = try TimeRange(start: min(time, start), end: max(time, start))
    return range
  }

  /// The start and the end of the range in the edited composition; nil for those that are not set.
  var rangeTimes: (start: Rational?, end: Rational?) {
    let start = range?.start ?? rangeStart
    return (start.map { editedTime(of: $0.seconds) }, range.map { editedTime(of: $0.end.seconds) })
  }

  /// Sets the playback speed of the range.
  mutating func setSpeed(_ speed: Speed) throws(MediaError) {
    let whole = try TimeRange(duration: base.duration)
    let range = self.range ?? whole
    var kept: [Composition.SpeedChange] = []
    for change in changes {
      let parts = [
        (change.range.start, min(change.range.end, range.start)),
        (max(change.range.start, range.end), change.range.end),
      ]
      for (start, end) in parts where start < end {
        let range = try TimeRange(start: start, end: end)
        kept.append(Composition.SpeedChange(change.speed, in: range))
      }
    }
    if speed != .normal { kept.append(Composition.SpeedChange(speed, in: range)) }
    var edited = self
    edited.changes = kept.sorted { $0.range.start < $1.range.start }
    // Throws before anything is changed if the edited composition cannot be represented exactly.
    _ = try edited.composition()
    self = edited
  }

  /// Adds a mark with the first unused name.
  ///
  /// - Returns: The new mark; nil if a mark at this time exists.
  mutating func addMark(
    at time: MediaTime, comment: String
  ) throws(MediaError) -> CompositionMarker? {
    guard !marks.contains(where: { $0.range.start == time }) else { return nil }
    let names = Set(marks.map(\.name))
    var number = 1
    while names.contains("mark\(number)") { number += 1 }
    let mark = CompositionMarker(
      "mark\(number)", try TimeRange(start: time, end: time), color: "GREEN", comment: comment)
    marks.append(mark)
    return mark
  }
}
