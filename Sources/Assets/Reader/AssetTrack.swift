// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

/// A track of an asset, of any media type.
public struct AssetTrack: Sendable, Identifiable {
  /// The index of the track in the file, from 0.
  public let id: Int
  /// The media type, or nil for other media such as subtitles and timecodes.
  public let mediaType: MediaType?
  /// The codec's name in FFmpeg.
  public let codec: String
  /// The track's tags.
  public let metadata: [String: String]
  /// The frames, if this is a video track that can be decoded; otherwise nil.
  public let video: VideoTrack?
  /// The audio, if this is an audio track that can be decoded; otherwise nil.
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

  /// All tracks of a file.
  ///
  /// The asset has already read its first video track and its first audio track, which are passed
  /// in. If another track cannot be decoded, it is listed without its content, so the file stays
  /// readable.
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
