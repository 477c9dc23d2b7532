// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Which source time plays when: tracks of pictures and sound, each a list of segments.
///
/// A value, so an export works on its own copy and an edit cannot disturb it. An edit of the
/// composition is the same edit of every track, as far as the track reaches; a single track is
/// edited through ``tracks``. Every edit is exact, or throws and changes nothing; several are
/// made all or none by ``edit(_:)``.
///
/// The counterpart of `AVMutableComposition`.
public struct Composition: Hashable, Sendable, Codable {
  /// The tracks; an export takes the first of each kind.
  public var tracks: [CompositionTrack]
  /// Notes, in the time of the composition; edits leave them where they are.
  public var markers: [CompositionMarker] = []

  /// Makes a composition of no tracks, which lasts zero seconds.
  public init() { tracks = [] }

  /// Makes a composition of tracks.
  public init(tracks: [CompositionTrack]) { self.tracks = tracks }

  /// Makes a composition that plays the whole of a source as it is.
  public init(_ source: MediaSource) {
    self.init()
    // Never refused, because the source's duration is above zero.
    if let range = try? TimeRange(duration: source.duration) {
      try? insertTimeRange(range, of: source, at: .zero)
    }
  }

  /// Makes a composition of one track of pictures whose segments are already placed.
  ///
  /// - Throws: `MediaError` as ``validateSegments()`` does.
  public init(segments: [TrackSegment]) throws(MediaError) {
    tracks = [try CompositionTrack(.video, segments: segments)]
  }

  /// The segments that lead: those of the first track of pictures, or else of the first track.
  public var segments: [TrackSegment] {
    (track(.video) ?? tracks.first)?.segments ?? []
  }

  /// The first track of a kind.
  public func track(_ mediaType: MediaType) -> CompositionTrack? {
    tracks.first { $0.mediaType == mediaType }
  }

  /// The end of the track that ends last; zero when there is none.
  public var duration: MediaTime { tracks.map(\.duration).max() ?? .zero }

  /// The sources that are played, each once, in the order of the tracks and their segments.
  public var sources: [MediaSource] {
    var sources: [MediaSource] = []
    for case let source? in tracks.lazy.flatMap(\.segments).map(\.source)
    where !sources.contains(source) {
      sources.append(source)
    }
    return sources
  }

  /// The same composition with its sources at other paths.
  ///
  /// - Parameter path: Gives the new path for an old one.
  /// - Returns: The composition; this one is unchanged.
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

  /// Throws unless the segments of each track start at zero, leave no hole, do not overlap, and
  /// stay inside their sources.
  ///
  /// - Throws: `MediaError` with `.invalidSegments`, `.emptyRange` or `.outsideSource`.
  public func validateSegments() throws(MediaError) {
    for track in tracks { try track.validateSegments() }
  }

  /// The segment of the leading track that plays at an instant.
  ///
  /// Before zero it is the first one, from the end on the last one. Nil only when there is none.
  public func segment(at time: MediaTime) -> TrackSegment? {
    (track(.video) ?? tracks.first)?.segment(at: time)
  }

  /// Every instant at which a source time plays on the leading track, in order of the segments.
  ///
  /// The end of a source range does not belong to it, and neither does what is held. Empty when
  /// the time is never played.
  ///
  /// - Parameters:
  ///   - time: In seconds of the source.
  ///   - source: The source whose time it is.
  ///   - timescale: Units per second of the results.
  ///   - rounding: How an instant becomes a whole unit, once, from its exact place.
  /// - Returns: The instants, in the time of the composition.
  /// - Throws: `MediaError` with `.notExact` when a result does not fit.
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
  /// Makes several edits, all or none of them.
  ///
  /// - Throws: What the edits throw; the composition is then as it was before the first.
  public mutating func edit<Failure: Error>(
    _ body: (inout Composition) throws(Failure) -> Void
  ) throws(Failure) {
    var edited = self
    try body(&edited)
    self = edited
  }

  /// Inserts a range of a source at its own speed, and moves what plays from `time` on back.
  ///
  /// Every track of the source goes to the first track of its kind, which is added where there
  /// is none; on tracks of other kinds nothing plays meanwhile. Past the end, the time up to
  /// `time` plays nothing. Rotation and language come along, unless a track has them already.
  ///
  /// - Parameters:
  ///   - range: What to play, in the time of the source.
  ///   - source: What it is taken from.
  ///   - time: Where it starts, in the time of the composition; zero or later.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideSource`, `.outsideComposition` for a
  ///   time before zero, or `.notExact`.
  public mutating func insertTimeRange(
    _ range: TimeRange, of source: MediaSource, at time: MediaTime
  ) throws(MediaError) {
    try source.check(range)
    try insert(range, source.tracks.map(\.mediaType), at: time) { (track) throws(MediaError) in
      try track.insertTimeRange(range, of: source, at: time)
    }
  }

  /// Adds a range of a source at its own speed behind what plays last.
  ///
  /// - Parameters:
  ///   - source: What it is taken from.
  ///   - range: What to play, in the time of the source; all of it where nil.
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

  /// Inserts what another composition plays in a range, as it plays it.
  ///
  /// - Throws: `MediaError` as ``insertTimeRange(_:of:at:)-(_,MediaSource,_)`` does, with
  ///   `.outsideComposition` for a range that is not inside the other composition.
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

  /// A range to be inserted.
  public struct Part: Hashable, Sendable {
    /// In the time of the source.
    public let range: TimeRange
    /// What it is a range of; nil for time that plays nothing.
    public let source: MediaSource?

    /// Makes a part.
    public init(_ range: TimeRange, of source: MediaSource?) {
      self.range = range
      self.source = source
    }
  }

  /// Inserts several ranges one after the other, all or none of them.
  ///
  /// - Parameters:
  ///   - parts: What they play.
  ///   - time: Where the first one starts, in the time of the composition; zero or later.
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

  /// Inserts time that plays nothing, and moves what plays from its start on back.
  ///
  /// At or past the end of a track it lengthens the track up to the end of `range`, where
  /// `AVMutableComposition` ignores the call.
  ///
  /// - Parameter range: In the time of the composition; from zero or later.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` for a start before zero,
  ///   or `.notExact`.
  public mutating func insertEmptyTimeRange(_ range: TimeRange) throws(MediaError) {
    try CompositionTrack.check(range, upTo: nil)
    try change("inserting \(range.displayText)") { (track) throws(MediaError) in
      try track.insert([TrackSegment(empty: range)])
    }
  }

  /// Takes a range out, and moves what plays after it forward.
  ///
  /// - Parameter range: In the time of the composition.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func removeTimeRange(_ range: TimeRange) throws(MediaError) {
    try CompositionTrack.check(range, upTo: duration)
    try change("removing \(range.displayText)") { (track) throws(MediaError) in
      try track.remove(range)
    }
  }

  /// Plays what is in a range faster or slower, so that it fills another length, and moves what
  /// plays after it.
  ///
  /// Speeds multiply: a quarter of a half is an eighth. Empty time scales too.
  ///
  /// - Parameters:
  ///   - range: In the time of the composition.
  ///   - duration: The new length, above zero.
  /// - Throws: `MediaError` with `.emptyRange` when the range or the duration is not longer
  ///   than zero, `.outsideComposition` or `.notExact`.
  public mutating func scaleTimeRange(
    _ range: TimeRange, toDuration duration: MediaTime
  ) throws(MediaError) {
    try CompositionTrack.check(range, upTo: self.duration)
    try change("scaling \(range.displayText) to \(duration.displayText)") {
      (track) throws(MediaError) in try track.scale(range, to: duration)
    }
  }

  /// Plays what is in a range at a speed, and moves what plays after it.
  ///
  /// Speeds multiply, as in ``scaleTimeRange(_:toDuration:)``.
  ///
  /// - Parameters:
  ///   - speed: Seconds of the range in each second of the result: an eighth is slow motion.
  ///   - range: In the time of the composition.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func setSpeed(_ speed: Speed, in range: TimeRange) throws(MediaError) {
    try CompositionTrack.check(range, upTo: duration)
    try change("playing \(range.displayText) at speed \(speed)") { (track) throws(MediaError) in
      try track.scale(range, to: MediaTime(range.duration * speed.stretch))
    }
  }

  /// Lets the speed of a range go from one to another, and moves what plays after it.
  ///
  /// Speeds multiply, as in ``scaleTimeRange(_:toDuration:)``. On each track one source must play
  /// at one speed in the range, because a cut under a ramp would have no exact time.
  ///
  /// - Parameters:
  ///   - ramp: How the speed changes.
  ///   - range: In the time of the composition.
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

  /// Holds the picture at an instant, in silence, and moves what plays from there on back.
  ///
  /// At the end, the last picture is held.
  ///
  /// - Parameters:
  ///   - time: In the time of the composition, up to its end.
  ///   - duration: How long it is held, above zero.
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

  /// Plays a range backwards, picture and sound; nothing moves.
  ///
  /// - Parameter range: In the time of the composition.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func reverse(_ range: TimeRange) throws(MediaError) {
    try CompositionTrack.check(range, upTo: duration)
    try change("reversing \(range.displayText)") { (track) throws(MediaError) in
      try track.turn(range)
    }
  }

  /// Changes every track, or none; an error says what could not be computed.
  private mutating func change(
    _ what: String, _ body: (inout CompositionTrack) throws(MediaError) -> Void
  ) throws(MediaError) {
    var changed = tracks
    try exactly(what) { () throws(MediaError) in
      for index in changed.indices { try body(&changed[index]) }
    }
    tracks = changed
  }

  /// The time that a range fills at its own speed from `time` on.
  private static func space(
    for range: TimeRange, at time: MediaTime
  ) throws(MediaError) -> TimeRange {
    try exactly("inserting \(range.displayText) at \(time.displayText)") {
      () throws(MediaError) in try TimeRange(start: time, duration: MediaTime(range.duration))
    }
  }

  /// Inserts into the first track of each kind, and makes room in the others.
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
