// SPDX-License-Identifier: Apache-2.0

import Algorithms
public import OvercrankMediaCore

/// One track of a composition: segments that follow each other from zero without gaps.
///
/// Every edit is exact, or throws and changes nothing. New boundaries are computed from exact
/// times, so rounding errors cannot accumulate.
///
/// The counterpart of `AVMutableCompositionTrack`.
public struct CompositionTrack: Hashable, Sendable {
  /// The media type of the track.
  public let mediaType: MediaType
  /// The segments in order.
  ///
  /// The first starts at zero, each other one at the end of its predecessor.
  public internal(set) var segments: [TrackSegment]
  /// Clockwise rotation in degrees that a player applies; nil until it is set or a source with a
  /// rotation is inserted.
  public var rotation: Int?
  /// The ISO 639-2 language code; nil until it is set or a source with a language is inserted.
  public var language: String?

  /// Creates an empty track of zero duration.
  public init(_ mediaType: MediaType) {
    self.mediaType = mediaType
    segments = []
  }

  /// Creates a track of finished segments.
  ///
  /// - Throws: `MediaError` as ``validateSegments()`` does.
  public init(_ mediaType: MediaType, segments: [TrackSegment]) throws(MediaError) {
    self.mediaType = mediaType
    self.segments = segments
    try validateSegments()
    for source in segments.lazy.compactMap(\.source) { keepProperties(of: source) }
  }

  /// The end of the last segment; zero for an empty track.
  public var duration: MediaTime { segments.last?.target.end ?? .zero }

  /// Checks that the segments start at zero, follow each other without gaps or overlaps, and stay
  /// inside their sources.
  ///
  /// - Throws: `MediaError` with `.invalidSegments`, `.emptyRange` or `.outsideSource`.
  public func validateSegments() throws(MediaError) {
    var end = MediaTime.zero
    for segment in segments {
      guard segment.target.start == end else {
        throw MediaError(
          .invalidSegments,
          "the segment \(segment) does not start at \(end.displayText) s",
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

  /// Returns the segment at an instant in composition time.
  ///
  /// Returns the first segment for a time before zero, the last segment for a time after the end,
  /// and nil for an empty track.
  public func segment(at time: MediaTime) -> TrackSegment? {
    segments.isEmpty ? nil : segments[min(index(holding: time), segments.count - 1)]
  }

  /// Returns the index of the first segment that ends after `time`, or the number of segments.
  private func index(holding time: MediaTime) -> Int {
    segments.partitioningIndex { $0.target.end > time }
  }

  /// Copies the rotation and the language of a source's track, each only if this track has none.
  mutating func keepProperties(of source: MediaSource) {
    guard let track = source.tracks.first(where: { $0.mediaType == mediaType }) else { return }
    rotation = rotation ?? (track.rotation == 0 ? nil : track.rotation)
    language = language ?? track.language
  }
}

// MARK: Editing

extension CompositionTrack {
  /// Inserts a source range at speed 1; the content after it plays later.
  ///
  /// If `time` is past the end, a gap fills the time between. Rotation and language are copied
  /// unless the track already has them.
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
    try exactly("inserting \(range.displayText) at \(time.displayText)") {
      () throws(MediaError) in
      let target = try TimeRange(start: time, end: MediaTime(time.seconds + range.duration))
      let mapping = try TimeMapping(source: range, target: target)
      try insert([TrackSegment(unchecked: source, PlaybackMapping(mapping))])
    }
    keepProperties(of: source)
  }

  /// Inserts a range of another track with its segments and speeds.
  ///
  /// If the range extends past the end of that track, a gap is inserted for the rest.
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

  /// Inserts a gap; the content after it plays later.
  ///
  /// If the range starts at or past the end of the track, the track is extended to the end of the
  /// range. `AVMutableCompositionTrack` ignores such a call.
  ///
  /// - Parameter range: The gap in composition time; its start is zero or later.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` for a negative start, or
  ///   `.notExact`.
  public mutating func insertEmptyTimeRange(_ range: TimeRange) throws(MediaError) {
    try exactly("inserting \(range.displayText)") { () throws(MediaError) in
      try insert([TrackSegment(empty: range)])
    }
  }

  /// Removes a range; the content after it plays earlier.
  ///
  /// - Parameter range: The range in composition time.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func removeTimeRange(_ range: TimeRange) throws(MediaError) {
    try Self.check(range, upTo: duration)
    try exactly("removing \(range.displayText)") { () throws(MediaError) in try remove(range) }
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
    try Self.check(range, upTo: self.duration)
    try exactly("scaling \(range.displayText) to \(duration.displayText)") {
      () throws(MediaError) in try scale(range, to: duration)
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
    try Self.check(range, upTo: duration)
    try exactly("playing \(range.displayText) at speed \(speed)") { () throws(MediaError) in
      try scale(range, to: MediaTime(range.duration * speed.stretch))
    }
  }

  /// Applies a speed ramp to a range; the content after it shifts.
  ///
  /// Speeds multiply, as in ``scaleTimeRange(_:toDuration:)``. The range must contain one source at
  /// one speed. Otherwise a cut or a speed change would lie inside the ramp, and its time could not
  /// be represented exactly.
  ///
  /// - Parameters:
  ///   - ramp: The speeds at both ends and the easing.
  ///   - range: The range in composition time.
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

  /// Freezes the frame at an instant; the content after it plays later.
  ///
  /// At the end of the track, the last frame is frozen. An audio track gets a gap instead.
  ///
  /// - Parameters:
  ///   - time: The instant in composition time, from zero to the end.
  ///   - duration: The duration of the frozen frame, above zero.
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

  /// Reverses a range; other content stays in place.
  ///
  /// - Parameter range: The range in composition time.
  /// - Throws: `MediaError` with `.emptyRange`, `.outsideComposition` or `.notExact`.
  public mutating func reverse(_ range: TimeRange) throws(MediaError) {
    try Self.check(range, upTo: duration)
    try exactly("reversing \(range.displayText)") {
      () throws(MediaError) in try reverseSegments(range)
    }
  }
}
