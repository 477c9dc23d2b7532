// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A stretch of a track that plays a range of one source, holds one instant of it, or nothing.
///
/// The counterpart of `AVCompositionTrackSegment`.
public struct TrackSegment: Hashable, Sendable {
  /// What is played; nil where nothing is.
  public let source: MediaSource?
  /// Which source time plays when; nil where nothing is played.
  public let mapping: PlaybackMapping?
  /// The time it fills, in the time of the composition; longer than zero.
  public let target: TimeRange

  /// Makes a segment that plays a range of a source at one speed.
  ///
  /// - Throws: `MediaError` with `.outsideSource` when the mapping's source range is not inside
  ///   the source.
  public init(of source: MediaSource, _ mapping: TimeMapping) throws(MediaError) {
    try source.check(mapping.source)
    self.init(unchecked: source, PlaybackMapping(mapping))
  }

  /// Makes a segment that plays a source in any way.
  ///
  /// - Throws: `MediaError` with `.outsideSource` when what is played is not inside the source.
  public init(of source: MediaSource, _ mapping: PlaybackMapping) throws(MediaError) {
    try source.check(mapping)
    self.init(unchecked: source, mapping)
  }

  /// Makes a segment that plays nothing: no picture, and silence.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when the range is empty.
  public init(empty target: TimeRange) throws(MediaError) {
    guard !target.isEmpty else {
      throw MediaError(
        .emptyRange, "the segment \(target.displayText) is empty", ranges: [target])
    }
    self.source = nil
    self.mapping = nil
    self.target = target
  }

  /// Makes a segment whose mapping is known to be inside the source.
  init(unchecked source: MediaSource, _ mapping: PlaybackMapping) {
    self.source = source
    self.mapping = mapping
    self.target = mapping.target
  }

  /// Whether nothing is played.
  public var isEmpty: Bool { mapping == nil }

  /// Source seconds per composition second, the mean where it changes; nil where nothing is
  /// played or one instant is held.
  ///
  /// - Throws: `MediaError` with `.notExact` when the fraction does not fit.
  public func speed() throws(MediaError) -> Speed? {
    guard let mapping else { return nil }
    return try exactly("the speed of \(target.displayText)") { () throws(MediaError) in
      try mapping.meanSpeed()
    }
  }

  /// Whether another segment goes on where this one ends, as if there were no cut: the same
  /// source, at the same speed in the same direction.
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

  /// This segment and the one that continues it, as one; nil where that cannot be said.
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

  /// The same content, filling another time.
  func filling(_ target: TimeRange) throws(MediaError) -> TrackSegment {
    guard let source, let mapping else { return try TrackSegment(empty: target) }
    return TrackSegment(unchecked: source, try mapping.filling(target))
  }

  /// The same content, the other way round.
  func reversed() throws(MediaError) -> TrackSegment {
    guard let source, let mapping else { return self }
    return TrackSegment(unchecked: source, try mapping.reversed())
  }

  /// The parts before and after an instant inside; each plays as it did.
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
  /// The segment as `"clip.mov 1/1..2/1 -> 1/1..9/1"`, or `"empty -> 0/1..1/1"`.
  public var description: String {
    guard let source, let mapping else { return "empty -> \(target)" }
    return "\(source.path) \(mapping)"
  }
}
