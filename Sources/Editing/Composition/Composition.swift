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
      self.range = range
      self.source = source
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
}
