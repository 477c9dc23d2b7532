// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

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
