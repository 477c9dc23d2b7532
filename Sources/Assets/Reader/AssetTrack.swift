// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

/// A track of an asset, of any media type.
public struct AssetTrack: Sendable, Identifiable {
  /// The index of the track in the file, from 0.
  public let id: Int
  /// The media type, or nil for other media such as subtitles and timecodes.
  public let mediaType: MediaType?
  /// The name of the track's codec in FFmpeg.
  public let codec: String
  /// The language as the file states it, such as `eng`; nil if it states none.
  public var language: String? { metadata["language"] }
  /// Whether the file marks the track for playback by default.
  ///
  /// False for all tracks of containers without such marks.
  public let isDefault: Bool
  /// Whether the track is enabled.
  ///
  /// Only MOV and MP4 can disable a track.
  public let isEnabled: Bool
  /// The track's tags.
  public let metadata: [String: String]
  /// The frames of a video track that can be decoded; nil for any other track.
  public let video: VideoTrack?
  /// The audio of an audio track that can be decoded; nil for any other track.
  public let audio: AudioTrack?
  let format: TrackFormat

  private init(
    _ format: TrackFormat, isMOV: Bool, video: VideoTrack? = nil, audio: AudioTrack? = nil
  ) {
    id = format.index
    isDefault = format.isDefault
    // In MOV and MP4, libavformat reports the flag of an enabled track as the mark of a default
    // track.
    isEnabled = !isMOV || format.isDefault
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

  /// Returns all tracks of a file.
  ///
  /// `video` and `audio` are the tracks that the asset has already read. Another track that cannot
  /// be decoded does not make the file unreadable. It is listed without frames or audio.
  static func all(
    of index: AssetIndex, video: VideoTrack?, audio: AudioTrack?, allowsTruncation: Bool
  ) -> [AssetTrack] {
    index.tracks.map { format in
      let isMOV = index.isMOV
      guard format.parameters.hasDecoder else { return AssetTrack(format, isMOV: isMOV) }
      switch format.kind {
      case .video:
        let known = format.index == video?.format.index ? video : nil
        let track = known ?? (try? index.videoTrack(format, allowsTruncation: allowsTruncation))
        return AssetTrack(format, isMOV: isMOV, video: track)
      case .audio:
        let known = format.index == audio?.format.index ? audio : nil
        let track =
          known
          ?? (try? index.audioTrack(format, origin: video, allowsTruncation: allowsTruncation))
        return AssetTrack(format, isMOV: isMOV, audio: track)
      case .other: return AssetTrack(format, isMOV: isMOV)
      }
    }
  }
}
