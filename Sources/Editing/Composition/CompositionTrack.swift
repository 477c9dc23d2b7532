// SPDX-License-Identifier: Apache-2.0

import Algorithms
public import OvercrankMediaCore

/// Which source time plays when on one track: segments that follow each other from zero without a
/// hole.
///
/// Every edit is exact, or throws and changes nothing: each new boundary is computed from the
/// times that the edit was given, never by adding rounded lengths.
///
/// The counterpart of `AVMutableCompositionTrack`.
public struct CompositionTrack: Hashable, Sendable {
  /// What it carries.
  public let mediaType: MediaType
  /// The segments in order; the first starts at zero, each of the others where the one before
  /// it ends.
  public internal(set) var segments: [TrackSegment]
  /// Degrees by which a player turns the picture clockwise; nil until content brings its own.
  public var rotation: Int?
  /// The language by its ISO 639-2 code; nil until content brings its own.
  public var language: String?

  /// Makes a track of nothing, which lasts zero seconds.
  public init(_ mediaType: MediaType) {
    self.mediaType = mediaType
    segments = []
  }

  /// Makes a track of segments that are already placed.
  ///
  /// - Throws: `MediaError` as ``validateSegments()`` does.
  public init(_ mediaType: MediaType, segments: [TrackSegment]) throws(MediaError) {
    self.mediaType = mediaType
    self.segments = segments
    try validateSegments()
    for source in segments.lazy.compactMap(\.source) { keepProperties(of: source) }
  }

  /// The end of the last segment; zero when there is none.
  public var duration: MediaTime { segments.last?.target.end ?? .zero }

  /// Throws unless the segments start at zero, leave no hole, do not overlap, and stay inside
  /// their sources.
  ///
  /// - Throws: `MediaError` with `.invalidSegments`, `.emptyRange` or `.outsideSource`.
  public func validateSegments() throws(MediaError) {
    var end = MediaTime.zero
    for segment in segments {
      guard segment.target.start == end else {
        throw MediaError(
          .invalidSegments,
          "the segment \(segment) does not start at \(end.displayText) s, where it should",
          ranges: [segment.target])
      }
      guard !segment.target.isEmpty else {
        throw MediaError(
          .emptyRange, "the segment \(segment) has no length", ranges: [segment.target])
      }
      if let source = segment.source, let mapping = segment.mapping { try source.check(mapping) }
      end = segment.target.end
    }
  }

  /// The segment that plays at an instant, in the time of the composition.
  ///
  /// Before zero it is the first one, from the end on the last one. Nil only when there is none.
  public func segment(at time: MediaTime) -> TrackSegment? {
    segments.isEmpty ? nil : segments[min(index(holding: time), segments.count - 1)]
  }

  /// The index of the first segment that ends after `time`; the count from the end on.
  private func index(holding time: MediaTime) -> Int {
    segments.partitioningIndex { $0.target.end > time }
  }

  /// Takes over what is known of a source's track, where nothing is known yet.
  mutating func keepProperties(of source: MediaSource) {
    guard let track = source.tracks.first(where: { $0.mediaType == mediaType }) else { return }
    rotation = rotation ?? (track.rotation == 0 ? nil : track.rotation)
    language = language ?? track.language
  }
}

// MARK: Editing

extension CompositionTrack {
  /// Inserts a range of a source at its own speed, and moves what plays from `time` on back.
  ///
  /// Past the end, the time up to `time` plays nothing. Rotation and language come along, unless
  /// the track has them already.
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
    try exactly("inserting \(range.displayText) at \(time.displayText)") {
      () throws(MediaError) in
      let target = try TimeRange(start: time, end: MediaTime(time.seconds + range.duration))
      let mapping = try TimeMapping(source: range, target: target)
      try insert([TrackSegment(unchecked: source, PlaybackMapping(mapping))])
    }
    keepProperties(of: source)
  }

  /// Inserts what another track plays in a range, as it plays it.
  ///
  /// Where that track has ended, nothing plays.
  ///
  /// - Throws: `MediaError` as ``insertTimeRange(_:of:at:)`` does.
  public mutating func insertTimeRange(
    _ range: TimeRange, of track: CompositionTrack, at time: MediaTime
  ) throws(MediaError) {
    try Self.check(range, upTo: nil)
    try exactly("inserting \(range.displayText) at \(time.displayText)") {
      () throws(MediaError) in
      let (_, inside, _) = try track.padded(upTo: range.end).split(range)
      try insert(Self.moved(inside, by: time - range.start))
    }
    rotation = rotation ?? track.rotation
    language = language ?? track.language
  }

  /// Inserts time that plays nothing, and moves what plays from its start on back.
  ///
  /// At or past the end it lengthens the track up to the end of `range`, where
  /// `AVMutableCompositionTrack` ignores the call.
  ///
  /// - Parameter range: In the time of the composition; from zero or later.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` for a start before zero,
  ///   or `.notExact`.
  public mutating func insertEmptyTimeRange(_ range: TimeRange) throws(MediaError) {
    try exactly("inserting \(range.displayText)") { () throws(MediaError) in
      try insert([TrackSegment(empty: range)])
    }
  }

  /// Takes a range out, and moves what plays after it forward.
  ///
  /// - Parameter range: In the time of the composition.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func removeTimeRange(_ range: TimeRange) throws(MediaError) {
    try Self.check(range, upTo: duration)
    try exactly("removing \(range.displayText)") { () throws(MediaError) in try remove(range) }
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
    try Self.check(range, upTo: self.duration)
    try exactly("scaling \(range.displayText) to \(duration.displayText)") {
      () throws(MediaError) in try scale(range, to: duration)
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
    try Self.check(range, upTo: duration)
    try exactly("playing \(range.displayText) at speed \(speed)") { () throws(MediaError) in
      try scale(range, to: MediaTime(range.duration * speed.stretch))
    }
  }

  /// Lets the speed of a range go from one to another, and moves what plays after it.
  ///
  /// Speeds multiply, as in ``scaleTimeRange(_:toDuration:)``. In the range one source must play
  /// at one speed, because a cut under a ramp would have no exact time.
  ///
  /// - Parameters:
  ///   - ramp: How the speed changes.
  ///   - range: In the time of the composition.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition`, `.cutInRamp`, or
  ///   `.notExact`.
  public mutating func setSpeedRamp(
    _ ramp: SpeedRamp, in range: TimeRange
  ) throws(MediaError) {
    try Self.check(range, upTo: duration)
    try exactly("the ramp \(ramp) in \(range.displayText)") { () throws(MediaError) in
      try applyRamp(ramp, range)
    }
  }

  /// Holds what is shown at an instant, and moves what plays from there on back.
  ///
  /// At the end, the last picture is held. A track of sound is silent meanwhile.
  ///
  /// - Parameters:
  ///   - time: In the time of the composition, up to its end.
  ///   - duration: How long it is held, above zero.
  /// - Throws: `MediaError` with `.outsideComposition`, `.emptyRange`, or `.notExact`.
  public mutating func freezeFrame(
    at time: MediaTime, for duration: MediaTime
  ) throws(MediaError) {
    guard time >= .zero, time <= self.duration, !segments.isEmpty else {
      throw MediaError(
        .outsideComposition,
        "\(time.displayText) s is not inside the composition, which ends at "
          + "\(self.duration.displayText) s")
    }
    guard duration > .zero else {
      throw MediaError(.emptyRange, "a frame cannot be held for \(duration.displayText) s")
    }
    try exactly("holding \(time.displayText) for \(duration.displayText)") {
      () throws(MediaError) in
      let target = try TimeRange(start: time, duration: duration)
      let isEnd = time == self.duration
      guard mediaType == .video, let segment = segment(at: time), let source = segment.source,
        let mapping = segment.mapping
      else { return try insert([TrackSegment(empty: target)]) }
      let held = try PlaybackMapping(
        holding: MediaTime(mapping.sourceSeconds(of: time.seconds)),
        isBefore: mapping.motion == .hold ? mapping.isReversed : mapping.isReversed != isEnd,
        target: target)
      try insert([TrackSegment(unchecked: source, held)])
    }
  }

  /// Plays a range backwards; nothing moves.
  ///
  /// - Parameter range: In the time of the composition.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func reverse(_ range: TimeRange) throws(MediaError) {
    try Self.check(range, upTo: duration)
    try exactly("reversing \(range.displayText)") { () throws(MediaError) in try turn(range) }
  }
}
