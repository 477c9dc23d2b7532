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
      self.id = id
      self.isReversed = isReversed
    }
  }

  /// The mapping from composition time to source time; must not be reversed.
  public let mapping: PlaybackMapping
  /// The source of the mapping.
  public let source: Source

  /// Creates a segment.
  public init(_ mapping: PlaybackMapping, of source: Source = Source()) {
    self.mapping = mapping
    self.source = source
  }
}
