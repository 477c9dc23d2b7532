// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
public import OvercrankRetiming

/// Something that happened in a player.
public struct PlayerEvent: Hashable, Sendable {
  /// A kind of event.
  public enum Kind: Hashable, Sendable {
    /// The state changed.
    case state(PlayerState)
    /// The rate changed; with `low-quality`, it is the nearest rate that this algorithm supports.
    case rate(Rational)
    /// The pitch algorithm changed.
    case algorithm(AudioTimePitchAlgorithm)
    /// The frame of a seek or a step is decoded; the value is its composition time in seconds.
    case seekCompleted(Rational)
    /// A loop started over; the value is the number of repetitions so far.
    case looped(Int)
    /// The composition was replaced.
    case compositionReplaced
    /// A frame could not be decoded; the frame before it stays on screen.
    case undecodableFrame(path: String, index: Int)
    /// A file could not be read.
    case fileFailed(MediaError)
    /// Audio cannot be played; playback continues without audio.
    case audioFailed(MediaError)
    /// The sound card ran out of samples, so there was a gap of silence.
    case underrun
  }

  /// The kind of event.
  public let kind: Kind
  /// The host time of the event.
  public let hostTime: MediaTime
}
