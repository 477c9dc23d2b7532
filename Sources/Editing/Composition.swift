// SPDX-License-Identifier: Apache-2.0

public import MediaTiming

/// Which source time plays when: segments that follow each other from zero without a hole.
///
/// A value, so an export works on its own copy and an edit cannot disturb it. Picture and sound
/// share the one list. Every edit is exact, or throws and changes nothing: each new boundary is
/// computed from the times that the edit was given, never by adding rounded lengths.
///
/// The counterpart of `AVMutableComposition`.
public struct Composition: Hashable, Sendable {
  /// The segments in order; the first starts at zero, each of the others where the one before
  /// it ends.
  public private(set) var segments: [TrackSegment]

  /// Makes a composition of nothing, which lasts zero seconds.
  public init() { segments = [] }

  /// Makes a composition that plays the whole of a source as it is.
  public init(_ source: MediaSource) {
    segments = source.whole.map { [TrackSegment(unchecked: source, $0)] } ?? []
  }

  /// Makes a composition of segments that are already placed.
  ///
  /// - Throws: `EditingError` as ``validateSegments()`` does.
  public init(segments: [TrackSegment]) throws(EditingError) {
    self.segments = segments
    try validateSegments()
  }

  /// The end of the last segment; zero when there is none.
  public var duration: MediaTime { segments.last?.target.end ?? .zero }

  /// Throws unless the segments start at zero, leave no hole, do not overlap, and stay inside
  /// their sources.
  ///
  /// - Throws: `EditingError` with `.invalidSegments`, `.emptyRange` or `.outsideSource`.
  public func validateSegments() throws(EditingError) {
    var end = MediaTime.zero
    for segment in segments {
      guard segment.target.start == end else {
        throw EditingError(
          .invalidSegments, "the segment \(segment) does not start at \(end) s, where it should",
          ranges: [segment.target])
      }
      guard !segment.target.isEmpty else {
        throw EditingError(
          .emptyRange, "the segment \(segment) has no length", ranges: [segment.target])
      }
      if let source = segment.source, let mapping = segment.mapping {
        try source.check(mapping.source)
      }
      end = segment.target.end
    }
  }
}

// MARK: Looking up

extension Composition {
  /// The segment that plays at an instant, in the time of the composition.
  ///
  /// Before zero it is the first one, from the end on the last one. Nil only when there is none.
  public func segment(at time: MediaTime) -> TrackSegment? {
    segment(atIndex: index(holding: time))
  }

  /// Every instant at which a source time plays, in order and in seconds of the composition.
  ///
  /// The end of a source range does not belong to it. Empty when the time is never played.
  ///
  /// - Throws: `EditingError` with `.notExact` when a result does not fit.
  public func targetSeconds(
    ofSource time: Rational, in source: MediaSource
  ) throws(EditingError) -> [Rational] {
    var instants: [Rational] = []
    for segment in segments {
      guard segment.source == source, let mapping = segment.mapping,
        mapping.source.start.seconds <= time, time < mapping.source.end.seconds
      else { continue }
      instants.append(
        try exactly("the place of \(time) s of \(source.path)") { () throws(TimingError) in
          try mapping.targetSeconds(of: time)
        })
    }
    return instants
  }

  /// The segment of an index that may lie past the end.
  private func segment(atIndex index: Int) -> TrackSegment? {
    segments.isEmpty ? nil : segments[min(index, segments.count - 1)]
  }

  /// The index of the first segment that ends after `time`; the count from the end on.
  private func index(holding time: MediaTime) -> Int {
    var (low, high) = (0, segments.count)
    while low < high {
      let middle = (low + high) / 2
      if segments[middle].target.end > time { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

// MARK: Editing

extension Composition {
  /// Inserts a range of a source at its own speed, and moves what plays from `time` on back.
  ///
  /// Past the end, the time up to `time` plays nothing.
  ///
  /// - Parameters:
  ///   - range: What to play, in the time of the source.
  ///   - source: What it is taken from.
  ///   - time: Where it starts, in the time of the composition; zero or later.
  /// - Throws: `EditingError` with `.emptyRange`, `.outsideSource`, `.outsideComposition` for a
  ///   time before zero, or `.notExact`.
  public mutating func insertTimeRange(
    _ range: TimeRange, of source: MediaSource, at time: MediaTime
  ) throws(EditingError) {
    try source.check(range)
    let mapping = try exactly("inserting \(range.secondsText) at \(time)") {
      () throws(TimingError) in
      try TimeMapping(
        source: range,
        target: TimeRange(
          start: time, end: MediaTime(time.seconds.adding(range.durationInSeconds))))
    }
    try insert(TrackSegment(unchecked: source, mapping))
  }

  /// Inserts time that plays nothing, and moves what plays from its start on back.
  ///
  /// At or past the end it lengthens the composition up to the end of `range`, where
  /// `AVMutableComposition` ignores the call.
  ///
  /// - Parameter range: In the time of the composition; from zero or later.
  /// - Throws: `EditingError` with `.emptyRange`, `.outsideComposition` for a start before zero,
  ///   or `.notExact`.
  public mutating func insertEmptyTimeRange(_ range: TimeRange) throws(EditingError) {
    try insert(TrackSegment(empty: range))
  }

  /// Takes a range out, and moves what plays after it forward.
  ///
  /// - Parameter range: In the time of the composition.
  /// - Throws: `EditingError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func removeTimeRange(_ range: TimeRange) throws(EditingError) {
    try check(range)
    let (before, _, after) = try split(range)
    let change = try exactly("removing \(range.secondsText)") { () throws(TimingError) in
      try range.durationInSeconds.negated()
    }
    segments = before + (try Self.moved(after, by: change))
  }

  /// Plays what is in a range faster or slower, so that it fills another length, and moves what
  /// plays after it.
  ///
  /// Speeds multiply: a quarter of a half is an eighth. Empty time scales too.
  ///
  /// - Parameters:
  ///   - range: In the time of the composition.
  ///   - duration: The new length, above zero.
  /// - Throws: `EditingError` with `.emptyRange` when the range or the duration is not longer
  ///   than zero, `.outsideComposition` or `.notExact`.
  public mutating func scaleTimeRange(
    _ range: TimeRange, toDuration duration: MediaTime
  ) throws(EditingError) {
    try check(range)
    guard duration > .zero else {
      throw EditingError(
        .emptyRange, "the range \(range.secondsText) cannot be scaled to \(duration.secondsText) s",
        ranges: [range])
    }
    let (before, inside, after) = try split(range)
    let what = "scaling \(range.secondsText) to \(duration)"
    let start = range.start.seconds
    let (stretch, change) = try exactly(what) { () throws(TimingError) in
      (
        try duration.seconds.divided(by: range.durationInSeconds),
        try duration.seconds.subtracting(range.durationInSeconds)
      )
    }
    let scaled = try inside.map { (segment) throws(EditingError) in
      try segment.filling(
        exactly(what) { () throws(TimingError) in
          let ends = try [segment.target.start, segment.target.end].map {
            (time) throws(TimingError) in
            try MediaTime(time.seconds.subtracting(start).multiplied(by: stretch).adding(start))
          }
          return try TimeRange(start: ends[0], end: ends[1])
        })
    }
    segments = before + scaled + (try Self.moved(after, by: change))
  }

  private mutating func insert(_ segment: TrackSegment) throws(EditingError) {
    let target = segment.target
    guard target.start >= .zero else {
      throw EditingError(
        .outsideComposition, "\(target.start) s is before the start of the composition",
        ranges: [target])
    }
    guard target.start < duration else {
      segments += try padding(upTo: segment)
      return
    }
    let (before, after) = try split(segments, at: target.start)
    segments = before + [segment] + (try Self.moved(after, by: target.durationInSeconds))
  }

  /// The segment, after empty time where it does not start at the end.
  private func padding(upTo segment: TrackSegment) throws(EditingError) -> [TrackSegment] {
    guard segment.target.start > duration else { return [segment] }
    let end = segment.isEmpty ? segment.target.end : segment.target.start
    let gap = try exactly("the gap before \(segment)") { () throws(TimingError) in
      try TimeRange(start: duration, end: end)
    }
    return try [TrackSegment(empty: gap)] + (segment.isEmpty ? [] : [segment])
  }

  /// Throws unless `range` has a length and lies inside.
  private func check(_ range: TimeRange) throws(EditingError) {
    guard !range.isEmpty else {
      throw EditingError(.emptyRange, "the range \(range.secondsText) is empty", ranges: [range])
    }
    guard range.start >= .zero, range.end <= duration else {
      throw EditingError(
        .outsideComposition,
        "the range \(range.secondsText) is not inside the composition, which ends at \(duration.secondsText) s",
        ranges: [range])
    }
  }

  /// What plays before, in and after a range that lies inside.
  private func split(
    _ range: TimeRange
  ) throws(EditingError) -> (
    before: [TrackSegment], inside: [TrackSegment], after: [TrackSegment]
  ) {
    let (before, rest) = try split(segments, at: range.start)
    let (inside, after) = try split(rest, at: range.end)
    return (before, inside, after)
  }

  private func split(
    _ segments: [TrackSegment], at time: MediaTime
  ) throws(EditingError) -> ([TrackSegment], [TrackSegment]) {
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
  private static func moved(
    _ segments: [TrackSegment], by change: Rational
  ) throws(EditingError) -> [TrackSegment] {
    guard change != .zero else { return segments }
    return try segments.map { (segment) throws(EditingError) in
      try segment.filling(
        exactly("moving \(segment)") { () throws(TimingError) in
          try TimeRange(
            start: MediaTime(segment.target.start.seconds.adding(change)),
            end: MediaTime(segment.target.end.seconds.adding(change)))
        })
    }
  }
}
