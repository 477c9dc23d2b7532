// SPDX-License-Identifier: Apache-2.0

/// What is known of a track of a movie before it is edited, and travels along with its content.
public struct SourceTrack: Hashable, Sendable, Codable {
  /// What it carries.
  public let mediaType: MediaType
  /// Degrees by which a player turns the picture clockwise: 0, 90, 180, 270.
  public let rotation: Int
  /// The language by its ISO 639-2 code; nil where the file names none.
  public let language: String?

  /// Makes the description of a track.
  public init(_ mediaType: MediaType, rotation: Int = 0, language: String? = nil) {
    self.mediaType = mediaType
    self.rotation = rotation
    self.language = language
  }
}

/// A movie to take ranges from: where it is, how long it plays, and what tracks it has.
///
/// A value; nothing is opened. Its playable range starts at zero, in the time of the source.
public struct MediaSource: Hashable, Sendable, Codable {
  /// The file, as the user named it.
  public private(set) var path: String
  /// How long it plays, longer than zero.
  public let duration: MediaTime
  /// Its tracks, one of a kind.
  public let tracks: [SourceTrack]

  /// Makes a source from what is known of a file.
  ///
  /// - Throws: `MediaError` with `.emptyRange` when the duration is not above zero.
  public init(
    path: String, duration: MediaTime, tracks: [SourceTrack] = [SourceTrack(.video)]
  ) throws(MediaError) {
    guard duration > .zero else {
      throw MediaError(
        .emptyRange, "\(path) lasts \(duration.displayText) s, so there is nothing to edit")
    }
    self.path = path
    self.duration = duration
    self.tracks = tracks
  }

  /// Reads a source.
  ///
  /// - Throws: `DecodingError`, also for a duration that is not above zero.
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

  /// The same source under another path.
  package func replacingPath(_ path: String) -> MediaSource {
    var source = self
    source.path = path
    return source
  }
}
