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
    (self.mediaType, self.segments) = (mediaType, segments)
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

// Decoded values pass the same checks as edited ones, so decoding cannot create an invalid
// composition.

extension TrackSegment: Codable {
  private enum CodingKeys: CodingKey { case source, mapping, target }

  /// Decodes a segment.
  ///
  /// - Throws: `DecodingError` for invalid data, and if the mapping is not inside the source.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    guard let source = try container.decodeIfPresent(MediaSource.self, forKey: .source) else {
      let target = try container.decode(TimeRange.self, forKey: .target)
      self = try decoder.checked { () throws(MediaError) in try TrackSegment(empty: target) }
      return
    }
    let mapping = try container.decode(PlaybackMapping.self, forKey: .mapping)
    self = try decoder.checked { () throws(MediaError) in
      try TrackSegment(of: source, mapping)
    }
  }

  /// Encodes the source and its mapping, or only the target range for a gap.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    if let source, let mapping {
      try container.encode(source, forKey: .source)
      try container.encode(mapping, forKey: .mapping)
    } else {
      try container.encode(target, forKey: .target)
    }
  }
}

extension CompositionTrack: Codable {
  private enum CodingKeys: CodingKey { case mediaType, segments, rotation, language }

  /// Decodes a track.
  ///
  /// - Throws: `DecodingError` for invalid data, and if the segments leave a gap or do not start at
  ///   zero.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let mediaType = try container.decode(MediaType.self, forKey: .mediaType)
    let segments = try container.decode([TrackSegment].self, forKey: .segments)
    self = try decoder.checked { () throws(MediaError) in
      try CompositionTrack(mediaType, segments: segments)
    }
    rotation = try container.decodeIfPresent(Int.self, forKey: .rotation)
    language = try container.decodeIfPresent(String.self, forKey: .language)
  }

  /// Encodes the media type, the segments, and the rotation and language if they are set.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(mediaType, forKey: .mediaType)
    try container.encode(segments, forKey: .segments)
    try container.encodeIfPresent(rotation, forKey: .rotation)
    try container.encodeIfPresent(language, forKey: .language)
  }
}
