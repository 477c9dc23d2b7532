// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The tracks of an asset to read.
///
/// Tracks are counted from 1 for each media type, in file order.
public struct TrackSelection: Hashable, Sendable {
  /// The audio track to read.
  public enum Audio: Hashable, Sendable {
    /// The one that the asset has chosen.
    case automatic
    /// The track with this number.
    case number(Int)
    /// None.
    case none
  }

  /// The number of the video track; nil for the one that the asset has chosen.
  public var video: Int?
  /// The audio track.
  public var audio: Audio

  /// Makes a selection.
  public init(video: Int? = nil, audio: Audio = .automatic) {
    (self.video, self.audio) = (video, audio)
  }
}

extension MediaError.Code {
  /// The file has no such track, or it cannot be decoded.
  public static let noSuchTrack = Self(rawValue: "no_such_track")
}

extension AudioTrack {
  /// The same track, with its samples counted from the first frame of another video track.
  func counted(from video: VideoTrack?) -> AudioTrack {
    let position = video.flatMap {
      try? ($0.origin * Rational(Int64(sampleRate))).rounded(.halfAwayFromZero)
    }
    // Without video, time zero is the first sample.
    let origin = position.flatMap { Int64(exactly: $0) } ?? startSample + originSample
    return AudioTrack(
      codec: codec, sampleRate: sampleRate, channelCount: channelCount, sampleCount: sampleCount,
      startSample: startSample + originSample - origin, format: format, originSample: origin)
  }
}
