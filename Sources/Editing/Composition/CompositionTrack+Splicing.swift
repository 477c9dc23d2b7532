// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

// How a track's segments are cut and put together again: the edits of one track or of all, of
// ranges that need not be inside.
extension CompositionTrack {
  mutating func remove(_ range: TimeRange) throws(MediaError) {
    try replace(range) { (_) throws(MediaError) in [] }
  }

  mutating func scale(_ range: TimeRange, to duration: MediaTime) throws(MediaError) {
    guard duration > .zero else {
      throw MediaError(
        .emptyRange, "the range \(range.displayText) cannot be scaled to \(duration.displayText) s",
        ranges: [range])
    }
    let what = "scaling \(range.displayText) to \(duration.displayText)"
    let start = range.start.seconds
    let stretch = try exactly(what) { () throws(MediaError) in
      try duration.seconds.divided(by: range.duration)
    }
    try replace(range, lasting: duration.seconds) { (inside) throws(MediaError) in
      try inside.map { (segment) throws(MediaError) in
        try segment.filling(
          exactly(what) { () throws(MediaError) in
            let ends = try [segment.target.start, segment.target.end].map {
              (time) throws(MediaError) in
              try MediaTime(time.seconds.subtracting(start).multiplied(by: stretch).adding(start))
            }
            return try TimeRange(start: ends[0], end: ends[1])
          })
      }
    }
  }

  mutating func applyRamp(_ ramp: SpeedRamp, _ range: TimeRange) throws(MediaError) {
    let length = try exactly("the ramp \(ramp) in \(range.displayText)") {
      () throws(MediaError) in
      try ramp.targetDuration(of: MediaTime(range.duration))
    }
    try replace(range, lasting: length.seconds) { (inside) throws(MediaError) in
      var whole = inside.first
      for next in inside.dropFirst() { whole = whole?.joined(with: next) }
      guard let segment = whole, segment.target == range || inside.isEmpty else {
        if inside.isEmpty { return [] }
        throw MediaError(
          .cutInRamp,
          "the ramp in \(range.displayText) has a cut or a change of speed at "
            + "\(inside.first?.target.end.displayText ?? "") s, which would have no exact time",
          ranges: [range])
      }
      let target = try exactly("the ramp in \(range.displayText)") { () throws(MediaError) in
        try TimeRange(start: range.start, duration: length)
      }
      guard let source = segment.source, let mapping = segment.mapping, mapping.motion != .hold
      else { return [try segment.filling(target)] }
      guard mapping.motion == .constant else {
        throw MediaError(
          .cutInRamp, "the range \(range.displayText) has a ramp already", ranges: [range])
      }
      let ramped = try exactly("the ramp in \(range.displayText)") { () throws(MediaError) in
        let content = try TimeRange(
          start: MediaTime(mapping.sourceStart), end: MediaTime(mapping.sourceEnd))
        // What plays backwards is the mirror of a ramp the other way round.
        let shaped = try PlaybackMapping(
          mapping.isReversed ? ramp.reversed : ramp, source: content, target: target)
        return mapping.isReversed ? try shaped.reversed() : shaped
      }
      return [TrackSegment(unchecked: source, ramped)]
    }
  }

  mutating func turn(_ range: TimeRange) throws(MediaError) {
    let (start, end) = (range.start.seconds, range.end.seconds)
    try replace(range, lasting: range.duration) { (inside) throws(MediaError) in
      try inside.reversed().map { (segment) throws(MediaError) in
        try segment.reversed().filling(
          exactly("reversing \(range.displayText)") { () throws(MediaError) in
            let sum = try start.adding(end)
            return try TimeRange(
              start: MediaTime(sum.subtracting(segment.target.end.seconds)),
              end: MediaTime(sum.subtracting(segment.target.start.seconds)))
          })
      }
    }
  }

  /// This track, with nothing played from its end up to a time.
  func padded(upTo time: MediaTime) throws(MediaError) -> CompositionTrack {
    guard time > duration else { return self }
    var track = self
    let gap = try exactly("the gap up to \(time.displayText)") { () throws(MediaError) in
      try TimeRange(start: duration, end: time)
    }
    track.segments.append(try TrackSegment(empty: gap))
    return track
  }

  /// Throws unless `range` has a length, and lies inside what ends at `end`.
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

  /// Inserts segments that follow each other from where the first one starts.
  mutating func insert(_ inserted: [TrackSegment]) throws(MediaError) {
    guard let first = inserted.first, let last = inserted.last else { return }
    let (start, end) = (first.target.start, last.target.end)
    guard start >= .zero else {
      throw MediaError(
        .outsideComposition, "\(start.displayText) s is before the start of the composition",
        ranges: [first.target])
    }
    guard start < duration else {
      var inserted = inserted
      if inserted.count == 1, first.isEmpty, start > duration {
        // The gap before it plays nothing as well.
        inserted = []
        segments = try padded(upTo: end).segments
      }
      segments = try padded(upTo: start).segments + inserted
      return
    }
    let length = try exactly("inserting at \(start.displayText)") { () throws(MediaError) in
      try end.seconds.subtracting(start.seconds)
    }
    let (before, after) = try Self.split(segments, at: start)
    segments = before + inserted + (try Self.moved(after, by: length))
  }

  /// Puts other segments where those of a range are, and moves what follows so that they last
  /// `length` seconds.
  ///
  /// A track that ends inside the range may be left shorter; one that ends before it is left
  /// alone.
  mutating func replace(
    _ range: TimeRange, lasting length: Rational = .zero,
    _ body: ([TrackSegment]) throws(MediaError) -> [TrackSegment]
  ) throws(MediaError) {
    guard range.start < duration else { return }
    let isCovered = range.end <= duration
    let (before, inside, after) = try (isCovered ? self : padded(upTo: range.end)).split(range)
    let change = try exactly("editing \(range.displayText)") { () throws(MediaError) in
      try length.subtracting(range.duration)
    }
    var changed = try body(inside)
    if !isCovered, changed.last?.isEmpty == true { changed.removeLast() }
    segments = before + changed + (try Self.moved(after, by: change))
  }

  /// What plays before, in and after a range that lies inside.
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

  /// The same segments, all of them this many seconds later.
  static func moved(
    _ segments: [TrackSegment], by change: Rational
  ) throws(MediaError) -> [TrackSegment] {
    guard change != .zero else { return segments }
    return try segments.map { (segment) throws(MediaError) in
      try segment.filling(
        exactly("moving \(segment)") { () throws(MediaError) in
          try TimeRange(
            start: MediaTime(segment.target.start.seconds.adding(change)),
            end: MediaTime(segment.target.end.seconds.adding(change)))
        })
    }
  }
}
