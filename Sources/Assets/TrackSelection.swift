// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// Selects the tracks of an asset that are read.
///
/// Tracks are counted from 1 for each media type, in file order.
public struct TrackSelection: Hashable, Sendable {
  /// Selects the audio track that is read.
  public enum Audio: Hashable, Sendable {
    /// The audio track that the asset chooses.
    case automatic
    /// The audio track with this number, from 1.
    case number(Int)
    /// No audio track.
    case none
  }

  /// The number of the video track, from 1; nil for the video track that the asset chooses.
  public var video: Int?
  /// The audio track that is read.
  public var audio: Audio

  /// Creates a selection.
  public init(video: Int? = nil, audio: Audio = .automatic) {
    (self.video, self.audio) = (video, audio)
  }
}

extension MediaError.Code {
  /// The file does not contain the requested track, or that track cannot be decoded.
  public static let noSuchTrack = Self(rawValue: "no_such_track")
}

extension AudioTrack {
  /// The same track, but with its samples counted from the first frame of this video track.
  func counted(from video: VideoTrack?) -> AudioTrack {
    let position = video.flatMap {
      try? ($0.origin * Rational(Int64(sampleRate))).rounded(.halfAwayFromZero)
    }
    // Without video, time zero is the first audio sample.
    let origin = position.flatMap { Int64(exactly: $0) } ?? startSample + originSample
    return AudioTrack(
      codec: codec, sampleRate: sampleRate, channelCount: channelCount, sampleCount: sampleCount,
      startSample: startSample + originSample - origin, format: format, originSample: origin,
      hasExactExtent: hasExactExtent, hasAscendingTimes: hasAscendingTimes)
  }
}
