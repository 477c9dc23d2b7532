// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension MediaError.Code {
  /// The player does not support the rate.
  public static let rateOutOfRange = Self(rawValue: "rate_out_of_range")
  /// The composition uses a file that the player was not given.
  public static let missingAsset = Self(rawValue: "missing_asset")
  /// No sound card can play the audio.
  public static let noAudioOutput = Self(rawValue: "no_audio_output")
}

extension MediaError {
  /// The error for an unsupported rate: neither zero nor from 1/32 to 32 in either direction.
  static func rateOutOfRange(_ rate: Rational) -> MediaError {
    MediaError(
      .rateOutOfRange,
      "a player cannot play at \(rate); it plays at 0 and from 1/32 to 32 in both directions",
      recovery: "choose a rate from 1/32 to 32")
  }
}
