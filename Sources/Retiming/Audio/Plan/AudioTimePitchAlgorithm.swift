// SPDX-License-Identifier: Apache-2.0

import CRubberBand
public import OvercrankMediaCore

/// What happens to the pitch of sound that plays at another speed.
///
/// The names of `AVAudioTimePitchAlgorithm`; the raw values are stable names for text and files.
public enum AudioTimePitchAlgorithm: String, Hashable, Sendable, CaseIterable {
  /// Keeps the pitch, in the frequency domain: the best for music, and the costliest.
  ///
  /// Rubber Band's R3 engine, steered by the map of speeds, which it follows over ramps. Claps and
  /// drums are kept from being stretched as far as their neighbours allow: they come within 2 ms of
  /// where they belong at half speed, and within 10 at an eighth.
  case spectral
  /// Keeps the pitch, in the time domain: cheaper, for voices, at half speed to double.
  ///
  /// Grains of 20 ms, all channels together (WSOLA). Claps and consonants are kept whole and come
  /// where they belong; at other speeds and in dense music repetition is heard.
  case timeDomain = "time-domain"
  /// Lets the pitch follow the speed, as a tape does: an eighth is three octaves lower.
  ///
  /// libswresample, and along ramps, between samples and at odd speeds a sinc of our own. Every event
  /// is within a hundredth of a sample of where it belongs.
  case varispeed
  /// Keeps the pitch, at next to no cost and without looking ahead: for playback, at seven speeds
  /// only (see ``AudioRetimer/lowQualitySpeeds``).
  ///
  /// Grains of 20 ms with a fade of 8 ms; claps may be doubled or lost.
  case lowQuality = "low-quality"
  /// Silence, exactly; what plays at speed 1 is heard.
  case mute

  /// The speeds that it is made for; nil where these are all that it plays.
  ///
  /// Others play all the same, and repetition or loss is heard.
  public var recommendedSpeeds: ClosedRange<Speed>? {
    self == .timeDomain ? Speed(1, over: 2)...Speed(2) : nil
  }

  /// Whether one engine goes on over changes of speed, rather than one for each speed.
  var followsBreakpoints: Bool {
    switch self {
    case .spectral, .timeDomain, .lowQuality: true
    case .varispeed, .mute: false
    }
  }
}

extension AudioRetimer {
  /// The library behind `spectral`.
  public static var libraryVersion: LibraryVersion {
    LibraryVersion("librubberband", RUBBERBAND_VERSION)
  }
}
