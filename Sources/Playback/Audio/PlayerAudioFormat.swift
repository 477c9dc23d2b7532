// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import OvercrankRetiming

/// The format of a player's audio output: that of the first source with audio, but at a sampling
/// rate that can be retimed.
///
/// Audio of another format is converted.
public struct PlayerAudioFormat: Hashable, Sendable {
  /// The sampling rate in hertz.
  public let sampleRate: Int
  /// The number of channels.
  public let channelCount: Int

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
      let rates = AudioRetimer.sampleRates
      return PlayerAudioFormat(
        sampleRate: min(max(track.sampleRate, rates.lowerBound), rates.upperBound),
        channelCount: track.channelCount)
    }
    return nil
  }
}
