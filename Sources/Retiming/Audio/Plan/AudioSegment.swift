// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A mapping from composition time to the time of one source.
public struct AudioSegment: Hashable, Sendable {
  /// A source and its playback direction.
  public struct Source: Hashable, Sendable {
    /// The caller's identifier of the source.
    public let id: Int
    /// True if samples are numbered from the end of the source, so that sample 0 is its last
    /// sample; false if from its start.
    ///
    /// Reverse playback is rendered as forward playback of the reversed source.
    public let isReversed: Bool

    /// Creates a source identifier.
    public init(id: Int = 0, isReversed: Bool = false) {
      (self.id, self.isReversed) = (id, isReversed)
    }
  }

  /// The mapping from composition time to source time; must not be reversed.
  public let mapping: PlaybackMapping
  /// The source of the mapping.
  public let source: Source

  /// Creates a segment.
  public init(_ mapping: PlaybackMapping, of source: Source = Source()) {
    (self.mapping, self.source) = (mapping, source)
  }
}

extension AudioSegment {
  /// Creates the segment of a mapping that may be reversed.
  ///
  /// The samples of a reversed source are numbered from its end, so its times are counted from the
  /// end too.
  ///
  /// - Parameters:
  ///   - mapping: The mapping; not a hold.
  ///   - id: The identifier of the source.
  ///   - end: The end of the source's audio, in seconds.
  /// - Throws: `MediaError` for times that cannot be represented.
  package init(
    playing mapping: PlaybackMapping, of id: Int, endingAt end: Rational
  ) throws(MediaError) {
    let isReversed = mapping.isReversed
    func range(_ start: Rational, _ stop: Rational) throws(MediaError) -> TimeRange {
      guard isReversed else { return try TimeRange(start: MediaTime(start), end: MediaTime(stop)) }
      let (first, last) = try (Self.time(end - stop), Self.time(end - start))
      return try TimeRange(start: min(first, last), end: max(first, last))
    }
    let source = Source(id: id, isReversed: isReversed)
    guard case .ramp(let ramp) = mapping.motion else {
      let line = try TimeMapping(
        source: range(mapping.sourceStart, mapping.sourceEnd), target: mapping.target)
      self.init(PlaybackMapping(line), of: source)
      return
    }
    let (whole, part) = (mapping.whole, mapping.part)
    self.init(
      try PlaybackMapping(
        partOf: isReversed ? ramp.reversed : ramp,
        source: range(whole.start.seconds, whole.end.seconds),
        from: isReversed ? 1 - part.upper : part.lower,
        to: isReversed ? 1 - part.lower : part.upper,
        isReversed: false, target: mapping.target),
      of: source)
  }

  /// Converts seconds to a time: exact if possible, else the nearest nanosecond.
  private static func time(_ seconds: Rational) throws(MediaError) -> MediaTime {
    if let exact = MediaTime(exactly: seconds) { return exact }
    let units = try (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
    return MediaTime(nanoseconds: Int64(clamping: units))
  }
}
