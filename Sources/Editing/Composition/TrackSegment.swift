// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A segment of a track: a source range, a frozen frame, or a gap.
///
/// The counterpart of `AVCompositionTrackSegment`.
public struct TrackSegment: Hashable, Sendable {
  /// The source; nil for a gap.
  public let source: MediaSource?
  /// The mapping from composition time to source time; nil for a gap.
  public let mapping: PlaybackMapping?
  /// The range that the segment fills in composition time; never empty.
  public let target: TimeRange

  /// Creates a segment that plays a source range at constant speed.
  ///
  /// - Throws: `MediaError` with `.outsideSource` if the mapping's source range is not inside the
  ///   source.
  public init(of source: MediaSource, _ mapping: TimeMapping) throws(MediaError) {
    try source.check(mapping.source)
    self.init(unchecked: source, PlaybackMapping(mapping))
  }

  /// Creates a segment with any playback mapping.
  ///
  /// - Throws: `MediaError` with `.outsideSource` if the mapping is not inside the source.
  public init(of source: MediaSource, _ mapping: PlaybackMapping) throws(MediaError) {
    try source.check(mapping)
    self.init(unchecked: source, mapping)
  }

  /// Creates a gap: no image and no audio.
  ///
  /// - Throws: `MediaError` with `.emptyRange` if the range is empty.
  public init(empty target: TimeRange) throws(MediaError) {
    guard !target.isEmpty else {
      throw MediaError(
        .emptyRange, "the segment \(target.displayText) is empty", ranges: [target])
    }
    self.source = nil
    self.mapping = nil
    self.target = target
  }

  /// Creates a segment without checking that the mapping is inside the source.
  init(unchecked source: MediaSource, _ mapping: PlaybackMapping) {
    (self.source, self.mapping) = (source, mapping)
    self.target = mapping.target
  }

  /// True for a gap, false for a source range or a frozen frame.
  public var isEmpty: Bool { mapping == nil }

  /// Returns the speed: source seconds per composition second.
  ///
  /// The result is the mean speed for a ramp, and nil for a gap or a frozen frame.
  ///
  /// - Throws: `MediaError` with `.notExact` if the fraction does not fit.
  public func speed() throws(MediaError) -> Speed? {
    guard let mapping else { return nil }
    return try exactly("the speed of \(target.displayText)") { () throws(MediaError) in
      try mapping.meanSpeed()
    }
  }

  /// Returns true if `next` continues this segment without a visible cut, and false otherwise.
  ///
  /// Both segments must play the same source in the same direction at the same constant speed, or
  /// both must be gaps, or both must freeze the same instant.
  public func isContinued(by next: TrackSegment) -> Bool {
    guard target.end == next.target.start else { return false }
    guard let mapping, let other = next.mapping else { return isEmpty && next.isEmpty }
    guard source == next.source, mapping.isReversed == other.isReversed else { return false }
    switch (mapping.motion, other.motion) {
    case (.hold, .hold): return mapping.sourceStart == other.sourceStart
    case (.constant, .constant):
      let meets =
        mapping.isReversed
        ? mapping.sourceStart == other.sourceEnd : mapping.sourceEnd == other.sourceStart
      guard meets, let speed = try? mapping.meanSpeed() else { return false }
      return (try? other.meanSpeed()) == speed
    default: return false
    }
  }

  /// Returns this segment joined with its continuation, or nil if they cannot be joined exactly.
  func joined(with next: TrackSegment) -> TrackSegment? {
    guard isContinued(by: next),
      let target = try? TimeRange(start: target.start, end: next.target.end)
    else { return nil }
    guard let source, let mapping, let other = next.mapping else {
      return try? TrackSegment(empty: target)
    }
    if mapping.motion == .hold {
      return (try? mapping.filling(target)).map { TrackSegment(unchecked: source, $0) }
    }
    let start = min(mapping.sourceStart, other.sourceStart)
    let end = max(mapping.sourceEnd, other.sourceEnd)
    guard let range = try? TimeRange(start: start, end: end),
      let line = try? TimeMapping(source: range, target: target)
    else { return nil }
    return TrackSegment(
      unchecked: source,
      mapping.isReversed ? PlaybackMapping(reversing: line) : PlaybackMapping(line))
  }

  /// Returns the same content scaled to another range.
  func filling(_ target: TimeRange) throws(MediaError) -> TrackSegment {
    guard let source, let mapping else { return try TrackSegment(empty: target) }
    return TrackSegment(unchecked: source, try mapping.filling(target))
  }

  /// Returns the same content reversed.
  func reversed() throws(MediaError) -> TrackSegment {
    guard let source, let mapping else { return self }
    return TrackSegment(unchecked: source, try mapping.reversed())
  }

  /// Splits the segment at an instant inside it; both parts keep their speeds.
  func split(at time: MediaTime) throws(MediaError) -> [TrackSegment] {
    guard let source, let mapping else {
      return [
        try TrackSegment(empty: TimeRange(start: target.start, end: time)),
        try TrackSegment(empty: TimeRange(start: time, end: target.end)),
      ]
    }
    let parts = try mapping.split(at: time)
    return [
      TrackSegment(unchecked: source, parts.before), TrackSegment(unchecked: source, parts.after),
    ]
  }
}

extension TrackSegment: CustomStringConvertible {
  /// The segment as `"clip.mov 1/1..2/1 -> 1/1..9/1"`, or `"empty -> 0/1..1/1"` for a gap.
  public var description: String {
    guard let source, let mapping else { return "empty -> \(target)" }
    return "\(source.path) \(mapping)"
  }
}

extension MediaSource {
  /// Throws if a range is empty or not inside this source.
  func check(_ range: TimeRange) throws(MediaError) {
    guard !range.isEmpty else {
      throw MediaError(
        .emptyRange, "the range \(range.displayText) of \(path) is empty", ranges: [range])
    }
    guard range.start >= .zero, range.end <= duration else {
      throw MediaError(
        .outsideSource,
        "the range \(range.displayText) is not inside \(path), which ends at \(duration.displayText) s",
        ranges: [range])
    }
  }

  /// Throws if the source range of a mapping is not inside this source.
  func check(_ mapping: PlaybackMapping) throws(MediaError) {
    guard mapping.sourceStart >= .zero, mapping.sourceEnd <= duration.seconds else {
      throw MediaError(
        .outsideSource,
        "the range \(mapping.sourceStart.displayText)..\(mapping.sourceEnd.displayText) is not inside "
          + "\(path), which ends at \(duration.displayText) s", ranges: [mapping.target])
    }
  }
}
