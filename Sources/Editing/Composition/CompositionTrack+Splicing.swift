// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

// Cutting and joining of segments, for edits of one track or of all tracks. Ranges may extend past
// the end of a track. If a time does not fit a `MediaTime`, these methods throw `.overflow`. The
// public edits catch it and throw `.notExact`, with a message that names the edit.
extension CompositionTrack {
  mutating func remove(_ range: TimeRange) throws(MediaError) {
    try replace(range, lasting: 0) { (_) throws(MediaError) in [] }
  }

  mutating func scale(_ range: TimeRange, to duration: MediaTime) throws(MediaError) {
    guard duration > .zero else {
      throw MediaError(
        .emptyRange, "the range \(range.displayText) cannot be scaled to \(duration.displayText) s",
        ranges: [range])
    }
    let start = range.start.seconds
    let stretch = duration.seconds / range.duration
    func scaled(_ time: MediaTime) -> Rational { (time.seconds - start) * stretch + start }
    try replace(range, lasting: duration.seconds) { (inside) throws(MediaError) in
      try inside.map { (segment) throws(MediaError) in
        try segment.filling(
          TimeRange(start: scaled(segment.target.start), end: scaled(segment.target.end)))
      }
    }
  }

  mutating func applyRamp(_ ramp: SpeedRamp, _ range: TimeRange) throws(MediaError) {
    let length = try ramp.targetDuration(of: MediaTime(range.duration))
    let target = try TimeRange(start: range.start, duration: length)
    try replace(range, lasting: length.seconds) { (inside) throws(MediaError) in
      guard let first = inside.first else { return [] }
      var whole: TrackSegment? = first
      for next in inside.dropFirst() { whole = whole?.joined(with: next) }
      guard let segment = whole, segment.target == range else {
        throw MediaError(
          .cutInRamp,
          "the ramp in \(range.displayText) has a cut or a change of speed at "
            + "\(first.target.end.displayText) s, which would have no exact time",
          ranges: [range])
      }
      guard let source = segment.source, let mapping = segment.mapping, mapping.motion != .hold
      else { return [try segment.filling(target)] }
      guard mapping.motion == .constant else {
        throw MediaError(
          .cutInRamp, "the range \(range.displayText) has a ramp already", ranges: [range])
      }
      let content = try TimeRange(start: mapping.sourceStart, end: mapping.sourceEnd)
      // A ramp is added to a mapping that plays forwards, and `reversed()` then reverses the ramp
      // too. For reversed content, the ramp is therefore reversed beforehand. After both reversals,
      // the ramp plays as requested.
      let shaped = try PlaybackMapping(
        mapping.isReversed ? ramp.reversed : ramp, source: content, target: target)
      return [
        TrackSegment(unchecked: source, mapping.isReversed ? try shaped.reversed() : shaped)
      ]
    }
  }

  mutating func reverseSegments(_ range: TimeRange) throws(MediaError) {
    func mirrored(_ time: MediaTime) -> Rational { range.start + range.end - time.seconds }
    try replace(range, lasting: range.duration) { (inside) throws(MediaError) in
      try inside.reversed().map { (segment) throws(MediaError) in
        try segment.reversed().filling(
          TimeRange(start: mirrored(segment.target.end), end: mirrored(segment.target.start)))
      }
    }
  }

  /// Returns this track with a gap from its end to a time.
  func padded(upTo time: MediaTime) throws(MediaError) -> CompositionTrack {
    guard time > duration else { return self }
    var track = self
    track.segments.append(try TrackSegment(empty: TimeRange(start: duration, end: time)))
    return track
  }

  /// Throws if a range is empty or not inside the composition, which ends at `end`.
  static func check(_ range: TimeRange, upTo end: MediaTime?) throws(MediaError) {
    guard !range.isEmpty else {
      throw MediaError(.emptyRange, "the range \(range.displayText) is empty", ranges: [range])
    }
    guard range.start >= .zero, range.end <= end ?? range.end else {
      throw MediaError(
        .outsideComposition,
        "the range \(range.displayText) is not inside the composition"
          + (end.map { ", which ends at \($0.displayText) s" } ?? ""),
        ranges: [range])
    }
  }

  /// Inserts consecutive segments at the time at which the first of them starts.
  mutating func insert(_ inserted: [TrackSegment]) throws(MediaError) {
    guard let first = inserted.first, let last = inserted.last else { return }
    let (start, end) = (first.target.start, last.target.end)
    guard start >= .zero else {
      throw MediaError(
        .outsideComposition, "\(start.displayText) s is before the start of the composition",
        ranges: [first.target])
    }
    if start < duration {
      let (before, after) = try Self.split(segments, at: start)
      segments = before + inserted + (try Self.moved(after, by: end - start))
    } else if inserted.count == 1, first.isEmpty, start > duration {
      // The inserted gap begins past the end of the track. The time between the end and the gap
      // must also be empty, so one longer gap fills both.
      segments = try padded(upTo: end).segments
    } else {
      segments = try padded(upTo: start).segments + inserted
    }
  }

  /// Replaces the segments of a range and moves later segments so that the range lasts `length`
  /// seconds.
  ///
  /// A track that ends before the range is unchanged. If a track ends inside the range, a gap
  /// extends it to the end of the range during the edit. If the result ends with a gap, this gap is
  /// dropped.
  mutating func replace(
    _ range: TimeRange, lasting length: Rational,
    _ body: ([TrackSegment]) throws(MediaError) -> [TrackSegment]
  ) throws(MediaError) {
    guard range.start < duration else { return }
    let isCovered = range.end <= duration
    let (before, inside, after) = try (isCovered ? self : padded(upTo: range.end)).split(range)
    var changed = try body(inside)
    if !isCovered, changed.last?.isEmpty == true { changed.removeLast() }
    segments = before + changed + (try Self.moved(after, by: length - range.duration))
  }

  /// Splits the segments into those before, inside and after a range.
  func split(
    _ range: TimeRange
  ) throws(MediaError) -> (
    before: [TrackSegment], inside: [TrackSegment], after: [TrackSegment]
  ) {
    let (before, rest) = try Self.split(segments, at: range.start)
    let (inside, after) = try Self.split(rest, at: range.end)
    return (before, inside, after)
  }

  private static func split(
    _ segments: [TrackSegment], at time: MediaTime
  ) throws(MediaError) -> ([TrackSegment], [TrackSegment]) {
    let index = segments.firstIndex { $0.target.end > time } ?? segments.count
    guard index < segments.count, segments[index].target.start < time else {
      return (Array(segments[..<index]), Array(segments[index...]))
    }
    let parts = try segments[index].split(at: time)
    return (
      Array(segments[..<index] + parts[..<1]), Array(parts[1...] + segments[(index + 1)...])
    )
  }

  /// Returns the segments moved by a number of seconds.
  static func moved(
    _ segments: [TrackSegment], by change: Rational
  ) throws(MediaError) -> [TrackSegment] {
    guard change != .zero else { return segments }
    return try segments.map { (segment) throws(MediaError) in
      try segment.filling(
        TimeRange(
          start: segment.target.start.seconds + change, end: segment.target.end.seconds + change))
    }
  }
}
