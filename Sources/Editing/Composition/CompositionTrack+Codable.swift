// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

// What is read is held to the same rules as what is edited: a composition that was decoded is one
// that could have been made.

extension TrackSegment: Codable {
  private enum CodingKeys: CodingKey { case source, mapping, target }

  /// Reads a segment.
  ///
  /// - Throws: `DecodingError`, also where what is played is not inside the source.
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

  /// Writes the source and its mapping, or the target where nothing is played.
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

  /// Reads a track.
  ///
  /// - Throws: `DecodingError`, also where the segments do not follow each other from zero.
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

  /// Writes the kind, the segments, and the properties that are known.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(mediaType, forKey: .mediaType)
    try container.encode(segments, forKey: .segments)
    try container.encodeIfPresent(rotation, forKey: .rotation)
    try container.encodeIfPresent(language, forKey: .language)
  }
}
