// SPDX-License-Identifier: Apache-2.0

public import MediaTiming

/// A stretch of a composition that plays a range of one source at one speed, or nothing.
///
/// The counterpart of `AVCompositionTrackSegment`.
public struct TrackSegment: Hashable, Sendable {
  /// What is played; nil where nothing is.
  public let source: MediaSource?
  /// Which source time plays when; nil where nothing is played.
  public let mapping: TimeMapping?
  /// The time it fills, in the time of the composition; longer than zero.
  public let target: TimeRange

  /// Makes a segment that plays a range of a source.
  ///
  /// - Throws: `EditingError` with `.outsideSource` when the mapping's source range is not inside
  ///   the source.
  public init(of source: MediaSource, _ mapping: TimeMapping) throws(EditingError) {
    try source.check(mapping.source)
    self.init(unchecked: source, mapping)
  }

  /// Makes a segment that plays nothing: no picture, and silence.
  ///
  /// - Throws: `EditingError` with `.emptyRange` when the range is empty.
  public init(empty target: TimeRange) throws(EditingError) {
    guard !target.isEmpty else {
      throw EditingError(.emptyRange, "the segment \(target) is empty", ranges: [target])
    }
    self.source = nil
    self.mapping = nil
    self.target = target
  }

  /// Makes a segment whose mapping is known to be inside the source.
  init(unchecked source: MediaSource, _ mapping: TimeMapping) {
    self.source = source
    self.mapping = mapping
    self.target = mapping.target
  }

  /// Whether nothing is played.
  public var isEmpty: Bool { mapping == nil }

  /// Source seconds per composition second; nil where nothing is played.
  ///
  /// - Throws: `EditingError` with `.notExact` when the fraction does not fit.
  public func speed() throws(EditingError) -> Speed? {
    guard let mapping else { return nil }
    return try exactly("the speed of \(target)") { () throws(TimingError) in try mapping.speed() }
  }

  /// The same content, filling another time.
  func filling(_ target: TimeRange) throws(EditingError) -> TrackSegment {
    guard let source, let mapping else { return try TrackSegment(empty: target) }
    let moved = try exactly("filling \(target)") { () throws(TimingError) in
      try TimeMapping(source: mapping.source, target: target)
    }
    return TrackSegment(unchecked: source, moved)
  }

  /// The parts before and after an instant inside; both keep the speed.
  func split(at time: MediaTime) throws(EditingError) -> [TrackSegment] {
    let targets = try exactly("a cut at \(time)") { () throws(TimingError) in
      try [TimeRange(start: target.start, end: time), TimeRange(start: time, end: target.end)]
    }
    guard let source, let mapping else {
      return try targets.map { (part) throws(EditingError) in try TrackSegment(empty: part) }
    }
    let mappings = try exactly("a cut at \(time)") { () throws(TimingError) in
      let cut = try MediaTime(mapping.sourceSeconds(of: time.seconds))
      return [
        try TimeMapping(
          source: TimeRange(start: mapping.source.start, end: cut), target: targets[0]),
        try TimeMapping(
          source: TimeRange(start: cut, end: mapping.source.end), target: targets[1]),
      ]
    }
    return mappings.map { TrackSegment(unchecked: source, $0) }
  }
}

extension TrackSegment: CustomStringConvertible {
  /// The segment as `"clip.mov 1/1..2/1 -> 1/1..9/1"`, or `"empty -> 0/1..1/1"`.
  public var description: String {
    guard let source, let mapping else { return "empty -> \(target)" }
    return "\(source.path) \(mapping.source) -> \(target)"
  }
}
