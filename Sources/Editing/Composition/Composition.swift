// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A timeline of video and audio tracks, each a list of segments.
///
/// A composition is a value: an export works on its own copy, so later edits cannot disturb it. An
/// edit of the composition applies to every track; a part of its range beyond a track's end has no
/// effect there. To edit a single track, use ``tracks``. Every edit is exact, or throws and changes
/// nothing. ``edit(_:)`` applies several edits or none.
///
/// The counterpart of `AVMutableComposition`.
public struct Composition: Hashable, Sendable, Codable {
  /// The tracks; an export uses the first track of each media type.
  public var tracks: [CompositionTrack]
  /// Markers in composition time; edits do not move them.
  public var markers: [CompositionMarker] = []

  /// Creates a composition without tracks, of zero duration.
  public init() { tracks = [] }

  /// Creates a composition of tracks.
  public init(tracks: [CompositionTrack]) { self.tracks = tracks }

  /// Creates a composition that plays a whole source at speed 1.
  public init(_ source: MediaSource) {
    self.init()
    // The insertion cannot fail, because the duration of a source is above zero.
    if let range = try? TimeRange(duration: source.duration) {
      try? insertTimeRange(range, of: source, at: .zero)
    }
  }

  /// Creates a composition of one video track from finished segments.
  ///
  /// - Throws: `MediaError` as ``validateSegments()`` does.
  public init(segments: [TrackSegment]) throws(MediaError) {
    tracks = [try CompositionTrack(.video, segments: segments)]
  }

  /// The segments of the leading track: the first video track, else the first track.
  public var segments: [TrackSegment] {
    (track(.video) ?? tracks.first)?.segments ?? []
  }

  /// Returns the first track of a media type, or nil.
  public func track(_ mediaType: MediaType) -> CompositionTrack? {
    tracks.first { $0.mediaType == mediaType }
  }

  /// The end of the longest track; zero without tracks.
  public var duration: MediaTime { tracks.map(\.duration).max() ?? .zero }

  /// All sources in use, each listed once, in the order of tracks and segments.
  public var sources: [MediaSource] {
    var sources: [MediaSource] = []
    for case let source? in tracks.lazy.flatMap(\.segments).map(\.source)
    where !sources.contains(source) {
      sources.append(source)
    }
    return sources
  }

  /// Returns a copy with other source paths.
  ///
  /// - Parameter path: A closure that returns the new path for an old path.
  /// - Returns: The copy; this composition is unchanged.
  /// - Throws: `MediaError` as ``validateSegments()`` does.
  public func replacingSourcePaths(_ path: (String) -> String) throws(MediaError) -> Composition {
    var moved = self
    for index in moved.tracks.indices {
      let track = tracks[index]
      let segments = try track.segments.map { (segment) throws(MediaError) in
        guard let source = segment.source, let mapping = segment.mapping else { return segment }
        return try TrackSegment(
          of: source.replacingPath(path(source.path)), mapping)
      }
      moved.tracks[index] = try CompositionTrack(track.mediaType, segments: segments)
      moved.tracks[index].rotation = track.rotation
      moved.tracks[index].language = track.language
    }
    return moved
  }

  /// Checks that the segments of each track start at zero, follow each other without gaps or
  /// overlaps, and stay inside their sources.
  ///
  /// - Throws: `MediaError` with `.invalidSegments`, `.emptyRange` or `.outsideSource`.
  public func validateSegments() throws(MediaError) {
    for track in tracks { try track.validateSegments() }
  }

  /// Returns the segment of the leading track at an instant.
  ///
  /// Returns the first segment for a time before zero, the last segment for a time after the end,
  /// and nil if the track has no segments.
  public func segment(at time: MediaTime) -> TrackSegment? {
    (track(.video) ?? tracks.first)?.segment(at: time)
  }

  /// Returns every instant at which a source time plays on the leading track, in segment order.
  ///
  /// Source ranges are half-open, so the end of a range does not match. Frozen frames do not match.
  /// The result is empty if the time is never played.
  ///
  /// - Parameters:
  ///   - time: The source time in seconds.
  ///   - source: The source of the time.
  ///   - timescale: Units per second of the results.
  ///   - rounding: The rounding of each exact instant to a whole unit.
  /// - Returns: The instants in composition time.
  /// - Throws: `MediaError` with `.notExact` if a result does not fit.
  public func targetTimes(
    ofSource time: Rational, in source: MediaSource, timescale: Int32, rounding: TimeRounding
  ) throws(MediaError) -> [MediaTime] {
    var instants: [MediaTime] = []
    for segment in segments {
      guard segment.source == source, let mapping = segment.mapping,
        mapping.sourceStart <= time, time < mapping.sourceEnd
      else { continue }
      instants.append(
        try exactly("the place of \(time.displayText) s of \(source.path)") {
          () throws(MediaError) in
          let ticks = try mapping.ticks(ofSource: time, timescale: timescale, rounding: rounding)
          return MediaTime(ticks, over: timescale)
        })
    }
    return instants
  }
}

// MARK: Editing

extension Composition {
  /// Applies several edits, or none if one of them throws.
  ///
  /// - Throws: The error of the failed edit; the composition is then unchanged.
  public mutating func edit<Failure: Error>(
    _ body: (inout Composition) throws(Failure) -> Void
  ) throws(Failure) {
    var edited = self
    try body(&edited)
    self = edited
  }

  /// Inserts a source range at speed 1; the content after it plays later.
  ///
  /// Each track of the source is inserted into the composition's first track of the same media
  /// type; a missing track is created. The other tracks of the composition get a gap. If `time` is
  /// past the end, a gap fills the time between. Rotation and language are copied unless the track
  /// already has them.
  ///
  /// - Parameters:
  ///   - range: The range to insert, in source time.
  ///   - source: The source of the range.
  ///   - time: The start in composition time; zero or later.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideSource`, `.outsideComposition` for a
  ///   negative time, or `.notExact`.
  public mutating func insertTimeRange(
    _ range: TimeRange, of source: MediaSource, at time: MediaTime
  ) throws(MediaError) {
    try source.check(range)
    try insert(range, source.tracks.map(\.mediaType), at: time) { (track) throws(MediaError) in
      try track.insertTimeRange(range, of: source, at: time)
    }
  }

  /// Appends a source range at speed 1 to the end of the composition.
  ///
  /// - Parameters:
  ///   - source: The source of the range.
  ///   - range: The range to append, in source time; nil for the whole source.
  /// - Throws: `MediaError` as ``insertTimeRange(_:of:at:)-(_,MediaSource,_)`` does.
  public mutating func append(
    _ source: MediaSource, range: TimeRange? = nil
  ) throws(MediaError) {
    if let range {
      try insertTimeRange(range, of: source, at: duration)
    } else {
      try insertTimeRange(TimeRange(duration: source.duration), of: source, at: duration)
    }
  }

  /// Inserts a range of another composition with its segments and speeds.
  ///
  /// - Throws: `MediaError` as ``insertTimeRange(_:of:at:)-(_,MediaSource,_)`` does. The code is
  ///   `.outsideComposition` if the range is not inside the other composition.
  public mutating func insertTimeRange(
    _ range: TimeRange, of composition: Composition, at time: MediaTime
  ) throws(MediaError) {
    try CompositionTrack.check(range, upTo: composition.duration)
    var kinds: [MediaType] = []
    for track in composition.tracks where !kinds.contains(track.mediaType) {
      kinds.append(track.mediaType)
    }
    try insert(range, kinds, at: time) { (track) throws(MediaError) in
      guard let other = composition.track(track.mediaType) else { return }
      try track.insertTimeRange(range, of: other, at: time)
    }
  }

  /// A range to insert with ``insertTimeRanges(_:at:)``.
  public struct Part: Hashable, Sendable {
    /// The range in source time.
    public let range: TimeRange
    /// The source of the range; nil inserts a gap of the same duration.
    public let source: MediaSource?

    /// Creates a part.
    public init(_ range: TimeRange, of source: MediaSource?) {
      (self.range, self.source) = (range, source)
    }
  }

  /// Inserts several ranges one after the other, or none if one insertion throws.
  ///
  /// - Parameters:
  ///   - parts: The ranges to insert.
  ///   - time: The start of the first range in composition time; zero or later.
  /// - Throws: `MediaError` as ``insertTimeRange(_:of:at:)-(_,MediaSource,_)`` does.
  public mutating func insertTimeRanges(
    _ parts: [Part], at time: MediaTime
  ) throws(MediaError) {
    try edit { (composition) throws(MediaError) in
      var position = time
      for part in parts {
        let target = try Self.space(for: part.range, at: position)
        if let source = part.source {
          try composition.insertTimeRange(part.range, of: source, at: position)
        } else {
          try composition.insertEmptyTimeRange(target)
        }
        position = target.end
      }
    }
  }

  /// Inserts a gap; the content after it plays later.
  ///
  /// If the range starts at or past the end of a track, the track is extended to the end of the
  /// range. `AVMutableComposition` ignores such a call.
  ///
  /// - Parameter range: The gap in composition time; its start is zero or later.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` for a negative start, or
  ///   `.notExact`.
  public mutating func insertEmptyTimeRange(_ range: TimeRange) throws(MediaError) {
    try CompositionTrack.check(range, upTo: nil)
    try change("inserting \(range.displayText)") { (track) throws(MediaError) in
      try track.insert([TrackSegment(empty: range)])
    }
  }

  /// Removes a range; the content after it plays earlier.
  ///
  /// - Parameter range: The range in composition time.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func removeTimeRange(_ range: TimeRange) throws(MediaError) {
    try CompositionTrack.check(range, upTo: duration)
    try change("removing \(range.displayText)") { (track) throws(MediaError) in
      try track.remove(range)
    }
  }

  /// Gives a range a new duration by changing its speed; the content after it shifts.
  ///
  /// Speeds multiply: content at 1/2 speed, scaled to twice its duration, plays at 1/4. Gaps are
  /// scaled too.
  ///
  /// - Parameters:
  ///   - range: The range in composition time.
  ///   - duration: The new duration, above zero.
  /// - Throws: `MediaError` with `.emptyRange` if the range or the duration is not above zero,
  ///   `.outsideComposition` or `.notExact`.
  public mutating func scaleTimeRange(
    _ range: TimeRange, toDuration duration: MediaTime
  ) throws(MediaError) {
    try CompositionTrack.check(range, upTo: self.duration)
    try change("scaling \(range.displayText) to \(duration.displayText)") {
      (track) throws(MediaError) in try track.scale(range, to: duration)
    }
  }

  /// Plays a range at a speed; the content after it shifts.
  ///
  /// Speeds multiply, as in ``scaleTimeRange(_:toDuration:)``.
  ///
  /// - Parameters:
  ///   - speed: Seconds of the range per second of the result: 1/8 is slow motion.
  ///   - range: The range in composition time.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func setSpeed(_ speed: Speed, in range: TimeRange) throws(MediaError) {
    try CompositionTrack.check(range, upTo: duration)
    try change("playing \(range.displayText) at speed \(speed)") { (track) throws(MediaError) in
      try track.scale(range, to: MediaTime(range.duration * speed.stretch))
    }
  }

  /// Applies a speed ramp to a range; the content after it shifts.
  ///
  /// Speeds multiply, as in ``scaleTimeRange(_:toDuration:)``. On each track the range must contain
  /// one source at one speed. Otherwise a cut or a speed change would lie inside the ramp, and its
  /// time could not be represented exactly.
  ///
  /// - Parameters:
  ///   - ramp: The speeds at both ends and the easing.
  ///   - range: The range in composition time.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition`, `.cutInRamp`, or
  ///   `.notExact`.
  public mutating func setSpeedRamp(
    _ ramp: SpeedRamp, in range: TimeRange
  ) throws(MediaError) {
    try CompositionTrack.check(range, upTo: duration)
    try change("the ramp \(ramp) in \(range.displayText)") { (track) throws(MediaError) in
      try track.applyRamp(ramp, range)
    }
  }

  /// Freezes the frame at an instant, without audio; later content plays after the frozen frame.
  ///
  /// At the end of the composition, the last frame is frozen.
  ///
  /// - Parameters:
  ///   - time: The instant in composition time, from zero to the end.
  ///   - duration: The duration of the frozen frame, above zero.
  /// - Throws: `MediaError` with `.outsideComposition`, `.emptyRange`, or `.notExact`.
  public mutating func freezeFrame(
    at time: MediaTime, for duration: MediaTime
  ) throws(MediaError) {
    guard time >= .zero, time <= self.duration, !tracks.isEmpty else {
      throw MediaError(
        .outsideComposition,
        "\(time.displayText) s is not inside the composition, which ends at "
          + "\(self.duration.displayText) s")
    }
    try change("holding \(time.displayText) for \(duration.displayText)") {
      (track) throws(MediaError) in
      guard time <= track.duration, !track.segments.isEmpty else { return }
      try track.freezeFrame(at: time, for: duration)
    }
  }

  /// Reverses the video and audio of a range; other content stays in place.
  ///
  /// - Parameter range: The range in composition time.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func reverse(_ range: TimeRange) throws(MediaError) {
    try CompositionTrack.check(range, upTo: duration)
    try change("reversing \(range.displayText)") { (track) throws(MediaError) in
      try track.reverseSegments(range)
    }
  }

  /// Applies an edit to all tracks, or to none if it throws for one of them.
  ///
  /// `what` names the edit in error messages.
  private mutating func change(
    _ what: String, _ body: (inout CompositionTrack) throws(MediaError) -> Void
  ) throws(MediaError) {
    var changed = tracks
    try exactly(what) { () throws(MediaError) in
      for index in changed.indices { try body(&changed[index]) }
    }
    tracks = changed
  }

  /// Returns the composition range that starts at `time` and is as long as a source range.
  private static func space(
    for range: TimeRange, at time: MediaTime
  ) throws(MediaError) -> TimeRange {
    try exactly("inserting \(range.displayText) at \(time.displayText)") {
      () throws(MediaError) in try TimeRange(start: time, duration: MediaTime(range.duration))
    }
  }

  /// Applies `body` to the first track of each media type in `kinds`, and inserts a gap as long as
  /// `range` into all other tracks.
  private mutating func insert(
    _ range: TimeRange, _ kinds: [MediaType], at time: MediaTime,
    _ body: (inout CompositionTrack) throws(MediaError) -> Void
  ) throws(MediaError) {
    let space = try Self.space(for: range, at: time)
    var changed = tracks
    for kind in kinds where track(kind) == nil { changed.append(CompositionTrack(kind)) }
    var waiting = Set(kinds)
    for index in changed.indices {
      if waiting.remove(changed[index].mediaType) != nil {
        try body(&changed[index])
      } else if time < changed[index].duration {
        try changed[index].insertEmptyTimeRange(space)
      }
    }
    tracks = changed
  }

  /// A source range, its playback speed and its direction.
  public struct SpeedChange: Hashable, Sendable {
    /// The range in source time.
    public let range: TimeRange
    /// The playback speed of the range.
    public let speed: Speed
    /// True if the range plays backwards, false if forwards.
    public let isReversed: Bool

    /// Creates a speed change.
    public init(_ speed: Speed, in range: TimeRange, isReversed: Bool = false) {
      (self.range, self.speed, self.isReversed) = (range, speed, isReversed)
    }
  }

  /// Returns a composition of a whole source with some ranges at other speeds or backwards.
  ///
  /// Time outside all ranges plays at speed 1.
  ///
  /// - Parameters:
  ///   - source: The source to play.
  ///   - changes: The ranges and speeds, in any order. Ranges may touch but not overlap.
  /// - Returns: The composition. Its duration is exact: 4 s with 1 s at 1/8 speed last 11 s.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideSource`, `.overlappingRanges` (the message
  ///   names both ranges), or `.notExact` if a boundary does not fit a `MediaTime`.
  public static func retimed(
    _ source: MediaSource, changes: [SpeedChange]
  ) throws(MediaError) -> Composition {
    for change in changes { try source.check(change.range) }
    try checkApart(changes.map(\.range), of: source)
    var composition = Composition(source)
    guard !changes.isEmpty else { return composition }
    // Builds one track by appending the ranges in order and copies it to all tracks. Editing the
    // composition would move all later segments at each edit, and a phone may store thousands of
    // ranges.
    var track = CompositionTrack(.video)
    var played = MediaTime.zero
    for change in changes.sorted(by: { $0.range.start < $1.range.start }) {
      try track.append(source, from: played, to: change.range.start)
      try track.append(source, change)
      played = change.range.end
    }
    try track.append(source, from: played, to: source.duration)
    for index in composition.tracks.indices { composition.tracks[index].segments = track.segments }
    return composition
  }

  /// Returns a composition that plays a whole source at another frame rate, with each frame shown
  /// once.
  ///
  /// A source with a constant rate then plays at exactly `rate`.
  ///
  /// - Parameters:
  ///   - source: The source to play.
  ///   - frameCount: The number of frames in the source, above zero.
  ///   - rate: The frame rate of the composition. The duration is exactly `frameCount / rate`.
  /// - Returns: The composition.
  /// - Throws: `MediaError` with `.emptyRange` if `frameCount` is not above zero, or `.notExact` if
  ///   the duration does not fit a `MediaTime`.
  public static func conformed(
    _ source: MediaSource, frameCount: Int64, to rate: FrameRate
  ) throws(MediaError) -> Composition {
    var composition = Composition(source)
    try exactly("playing \(source.path) at \(rate) fps") { () throws(MediaError) in
      try composition.scaleTimeRange(
        TimeRange(duration: source.duration),
        toDuration: MediaTime(Rational(frameCount) / rate.framesPerSecond))
    }
    return composition
  }

  /// A speed at an instant of a source.
  public struct SpeedPoint: Hashable, Sendable {
    /// The instant in source time.
    public let time: MediaTime
    /// The speed at the instant.
    public let speed: Speed

    /// Creates a speed point.
    public init(_ time: MediaTime, _ speed: Speed) {
      (self.time, self.speed) = (time, speed)
    }
  }

  /// Returns a composition of a whole source whose speed follows a list of points.
  ///
  /// The speed is constant before the first point and after the last. If two points have the same
  /// time, the speed jumps at that time from the first point's speed to the second's.
  ///
  /// - Parameters:
  ///   - source: The source to play.
  ///   - points: The points in ascending order of time, inside the source; at least one.
  ///   - easing: The shape of the speed change between two points.
  /// - Returns: The composition.
  /// - Throws: `MediaError` with `.outsideSource`, `.overlappingRanges` for points that are not in
  ///   ascending order, or `.notExact` if a boundary does not fit a `MediaTime`.
  public static func ramped(
    _ source: MediaSource, points: [SpeedPoint], easing: SpeedRamp.Easing = .linear
  ) throws(MediaError) -> Composition {
    for (first, second) in zip(points, points.dropFirst()) where first.time > second.time {
      throw MediaError(
        .overlappingRanges,
        "the ramp goes from \(first.time.displayText) s back to \(second.time.displayText) s")
    }
    for point in points where point.time < .zero || point.time > source.duration {
      throw MediaError(
        .outsideSource,
        "\(point.time.displayText) s is not inside \(source.path), which ends at "
          + "\(source.duration.displayText) s")
    }
    guard let first = points.first, let last = points.last else { return Composition(source) }
    let ends = [SpeedPoint(.zero, first.speed)] + points + [SpeedPoint(source.duration, last.speed)]
    var composition = Composition(source)
    for (start, end) in zip(ends, ends.dropFirst()).reversed() where start.time < end.time {
      let range = try TimeRange(start: start.time, end: end.time)
      if start.speed == end.speed {
        try composition.setSpeed(start.speed, in: range)
      } else {
        try composition.setSpeedRamp(
          SpeedRamp(from: start.speed, to: end.speed, easing: easing), in: range)
      }
    }
    return composition
  }
}

extension CompositionTrack {
  /// Appends a source range at speed 1, unless it is empty.
  fileprivate mutating func append(
    _ source: MediaSource, from start: MediaTime, to end: MediaTime
  ) throws(MediaError) {
    guard start < end else { return }
    try append(source, Composition.SpeedChange(.normal, in: TimeRange(start: start, end: end)))
  }

  /// Appends a source range at its speed and in its direction.
  fileprivate mutating func append(
    _ source: MediaSource, _ change: Composition.SpeedChange
  ) throws(MediaError) {
    // Returns the time in lowest terms, as a cut of the composition would store it; the end of the
    // source is returned unchanged.
    func boundary(_ time: MediaTime) throws(MediaError) -> MediaTime {
      time == source.duration ? source.duration : try MediaTime(time.seconds)
    }
    let range = try TimeRange(
      start: boundary(change.range.start), end: boundary(change.range.end))
    segments.append(
      try exactly("playing \(range.displayText) at speed \(change.speed)") {
        () throws(MediaError) in
        let target = try TimeRange(
          start: duration, end: MediaTime(duration.seconds + range.duration * change.speed.stretch))
        let line = try TimeMapping(source: range, target: target)
        return TrackSegment(
          unchecked: source,
          change.isReversed ? PlaybackMapping(reversing: line) : PlaybackMapping(line))
      })
  }
}

extension Composition {
  /// Returns a composition of only those parts that play the given source ranges.
  ///
  /// The composition must play the source once, forwards. Each part keeps its speeds. A frozen
  /// frame is kept if its source instant lies in one of the ranges. A frame frozen at the end of
  /// the source is kept if a range reaches this end.
  ///
  /// A range boundary inside a ramp may have no exact composition time. It is then moved into the
  /// range, to the next multiple of 1/240000 s, or of 1/24000 s if the finer one does not fit a
  /// `MediaTime`.
  ///
  /// - Parameters:
  ///   - ranges: The source ranges in playback order. They may touch but not overlap.
  ///   - source: The source of the ranges.
  /// - Returns: The trimmed composition; this one is unchanged.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideSource`, `.overlappingRanges` (the message
  ///   names both ranges), or `.notExact`.
  public func trimmed(
    to ranges: [TimeRange], of source: MediaSource
  ) throws(MediaError) -> Composition {
    for range in ranges { try source.check(range) }
    try Self.checkApart(ranges, of: source)
    var trimmed = Composition()
    for range in ranges {
      for playedRange in try playedRanges(of: range, of: source) {
        try trimmed.insertTimeRange(playedRange, of: self, at: trimmed.duration)
      }
    }
    return trimmed
  }

  /// Throws if any two ranges overlap.
  static func checkApart(
    _ ranges: [TimeRange], of source: MediaSource
  ) throws(MediaError) {
    let ordered = ranges.sorted { $0.start < $1.start }
    for (first, second) in zip(ordered, ordered.dropFirst()) where first.overlaps(second) {
      throw MediaError(
        .overlappingRanges,
        "the ranges \(first.displayText) and \(second.displayText) of \(source.path) overlap",
        ranges: [first, second])
    }
  }

  /// Returns the composition ranges in which a source range plays, in playback order.
  ///
  /// There are several ranges only if a part of the source range plays backwards.
  private func playedRanges(
    of range: TimeRange, of source: MediaSource
  ) throws(MediaError) -> [TimeRange] {
    var played: [TimeRange] = []
    try exactly("keeping \(range.displayText)") { () throws(MediaError) in
      for segment in segments where segment.source == source {
        guard let part = try segment.mapping?.playedRange(of: range) else { continue }
        if let last = played.last, last.end == part.start {
          played[played.count - 1] = try TimeRange(start: last.start, end: part.end)
        } else {
          played.append(part)
        }
      }
    }
    guard !played.isEmpty else {
      throw MediaError(
        .emptyRange, "the range \(range.displayText) of \(source.path) is not played",
        ranges: [range])
    }
    return played
  }
}

extension PlaybackMapping {
  /// Returns the composition range in which a part of this mapping plays; nil for none.
  fileprivate func playedRange(of range: TimeRange) throws(MediaError) -> TimeRange? {
    let (start, end) = (range.start.seconds, range.end.seconds)
    guard motion != .hold else {
      // A frozen last frame is stored with the end of the source as its instant. Source ranges
      // exclude their end, so no range contains this instant. The frame is kept if the range
      // reaches the end of the source.
      let isKept = sourceStart >= start && (sourceStart < end || isReversed && sourceStart == end)
      return isKept ? target : nil
    }
    guard sourceEnd > start, sourceStart < end else { return nil }
    let (begins, stops) =
      isReversed ? (sourceEnd > end, sourceStart < start) : (sourceStart < start, sourceEnd > end)
    let (first, last) = isReversed ? (end, start) : (start, end)
    return try TimeRange(
      start: begins ? instant(ofSource: first, rounding: .towardPositiveInfinity) : target.start,
      end: stops ? instant(ofSource: last, rounding: .towardNegativeInfinity) : target.end)
  }

  /// Returns the composition time at which a source time plays.
  ///
  /// The result is exact at constant speed. Inside a ramp it is rounded to a multiple of 1/240000 s
  /// or 1/24000 s.
  private func instant(
    ofSource time: Rational, rounding: TimeRounding
  ) throws(MediaError) -> MediaTime {
    if motion == .constant {
      let share = (time - sourceStart) / (sourceEnd - sourceStart)
      return try MediaTime(
        (isReversed ? 1 - share : share) * target.duration + target.start.seconds)
    }
    func rounded(_ timescale: Int32) throws(MediaError) -> MediaTime {
      let ticks = try ticks(ofSource: time, timescale: timescale, rounding: rounding)
      let instant = min(
        max(MediaTime(ticks, over: timescale), target.start), target.end)
      // Computes the source time that a cut at this instant will need. If this overflows, the
      // coarser timescale of 24000 is tried.
      _ = try sourceSeconds(of: instant.seconds)
      return instant
    }
    do throws(MediaError) { return try rounded(240_000) } catch { return try rounded(24_000) }
  }
}
