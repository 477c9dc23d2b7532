// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import OvercrankRetiming

/// The format of a player's audio output: that of the first source with audio.
///
/// Audio of another format is silent.
public struct PlayerAudioFormat: Hashable, Sendable {
  /// The sampling rate in hertz.
  public let sampleRate: Int
  /// The number of channels.
  public let channelCount: Int

  /// Returns true if an asset has audio of this format, and false otherwise.
  func plays(_ asset: Int, of timeline: PlaybackTimeline) -> Bool {
    guard let track = timeline.assets[asset].asset.audioTrack else { return false }
    return track.sampleRate == sampleRate && track.channelCount == channelCount
  }

  /// Throws if audio of this format cannot be retimed.
  func check() throws(MediaError) {
    _ = try AudioRetimer(
      algorithm: .mute, sampleRate: sampleRate, channelCount: channelCount)
  }
}

extension PlaybackTimeline {
  /// The format of the first source with audio; nil without audio.
  var audioFormat: PlayerAudioFormat? {
    for segment in audio {
      guard let content = segment.content,
        let track = assets[content.asset].asset.audioTrack
      else { continue }
      return PlayerAudioFormat(sampleRate: track.sampleRate, channelCount: track.channelCount)
    }
    return nil
  }
}
