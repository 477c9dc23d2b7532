// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

/// A track of an asset, of whatever media.
public struct AssetTrack: Sendable, Identifiable {
  /// Its index in the file, from 0.
  public let id: Int
  /// What it carries; nil for other media, such as subtitles and time codes.
  public let mediaType: MediaType?
  /// The codec, by FFmpeg's name.
  public let codec: String
  /// The track's tags.
  public let metadata: [String: String]
  /// The frames of a video track that can be decoded.
  public let video: VideoTrack?
  /// The audio of an audio track that can be decoded.
  public let audio: AudioTrack?
  let format: TrackFormat

  private init(_ format: TrackFormat, video: VideoTrack?, audio: AudioTrack?) {
    id = format.index
    mediaType =
      switch format.kind {
      case .video: .video
      case .audio: .audio
      case .other: nil
      }
    codec = format.parameters.codecName
    metadata = format.metadata
    self.video = video
    self.audio = audio
    self.format = format
  }

  /// The tracks of a file, of which the first of each kind are known; one of the others that cannot
  /// be decoded does not make the file unreadable.
  static func all(
    of index: AssetIndex, video: VideoTrack?, audio: AudioTrack?, allowsTruncation: Bool
  ) -> [AssetTrack] {
    index.tracks.map { format in
      guard format.parameters.hasDecoder else {
        return AssetTrack(format, video: nil, audio: nil)
      }
      switch format.kind {
      case .video:
        let known = format.index == video?.format.index ? video : nil
        let track = known ?? (try? index.videoTrack(format, allowsTruncation: allowsTruncation))
        return AssetTrack(format, video: track, audio: nil)
      case .audio:
        let known = format.index == audio?.format.index ? audio : nil
        let track =
          known
          ?? (try? index.audioTrack(format, origin: video, allowsTruncation: allowsTruncation))
        return AssetTrack(format, video: nil, audio: track)
      case .other: return AssetTrack(format, video: nil, audio: nil)
      }
    }
  }
}
