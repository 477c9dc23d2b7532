// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Which part of which source plays when.
public struct AudioSegment: Hashable, Sendable {
  /// A source, and the direction in which its samples are counted.
  public struct Source: Hashable, Sendable {
    /// The caller's number of the source.
    public let id: Int
    /// Whether its samples are counted from its end, the last one first: what plays backwards is
    /// rendered forwards out of the reversed source.
    public let isReversed: Bool

    /// Names a source.
    public init(id: Int = 0, isReversed: Bool = false) {
      self.id = id
      self.isReversed = isReversed
    }
  }

  /// Which time of the source plays when.
  ///
  /// It does not play backwards.
  public let mapping: PlaybackMapping
  /// The source whose time the mapping counts.
  public let source: Source

  /// Makes a segment.
  public init(_ mapping: PlaybackMapping, of source: Source = Source()) {
    self.mapping = mapping
    self.source = source
  }
}
