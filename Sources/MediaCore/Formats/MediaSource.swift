// SPDX-License-Identifier: Apache-2.0

/// A track of a movie, with the properties that an edited composition takes over.
public struct SourceTrack: Hashable, Sendable, Codable {
  /// Video or audio.
  public let mediaType: MediaType
  /// Clockwise rotation for display, in degrees: 0, 90, 180 or 270.
  public let rotation: Int
  /// The language as an ISO 639-2 code; nil where the file names none.
  public let language: String?

  /// Makes the description of a track.
  public init(_ mediaType: MediaType, rotation: Int = 0, language: String? = nil) {
    (self.mediaType, self.rotation, self.language) = (mediaType, rotation, language)
  }
}

/// A movie file whose ranges a composition plays, described by its path, duration and tracks.
///
/// A value type; no file is opened. The playable range starts at zero in the source's time.
public struct MediaSource: Hashable, Sendable, Codable {
  /// The file path as the user gave it.
  public private(set) var path: String
  /// The duration of the movie, longer than zero.
  public let duration: MediaTime
  /// The tracks, at most one of each media type.
  public let tracks: [SourceTrack]

  /// Makes a source from a file's known properties.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when the duration is not above zero.
  public init(
    path: String, duration: MediaTime, tracks: [SourceTrack] = [SourceTrack(.video)]
  ) throws(MediaError) {
    guard duration > .zero else {
      throw MediaError(
        .emptyRange, "\(path) lasts \(duration.displayText) s and has nothing to edit")
    }
    (self.path, self.duration, self.tracks) = (path, duration, tracks)
  }

  /// Decodes a source.
  ///
  /// - Throws: `DecodingError` for malformed input and for a duration of zero or below.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let path = try container.decode(String.self, forKey: .path)
    let duration = try container.decode(MediaTime.self, forKey: .duration)
    let tracks = try container.decode([SourceTrack].self, forKey: .tracks)
    self = try decoder.checked { () throws(MediaError) in
      try MediaSource(path: path, duration: duration, tracks: tracks)
    }
  }

  private enum CodingKeys: CodingKey { case path, duration, tracks }

  /// Returns the same source with another file path.
  package func replacingPath(_ path: String) -> MediaSource {
    var source = self
    source.path = path
    return source
  }
}
