// SPDX-License-Identifier: Apache-2.0

import CRubberBand

/// What happens to the pitch of sound that plays at another speed.
///
/// The names of `AVAudioTimePitchAlgorithm`; the raw values are those of the command line.
public enum AudioTimePitchAlgorithm: String, Hashable, Sendable, CaseIterable {
  /// Keeps the pitch, in the frequency domain: the best for music, and the costliest.
  ///
  /// Rubber Band's R3 engine. In slow motion it spreads a click: half of it may come up to 7 ms
  /// early at half speed, 60 ms at an eighth.
  case spectral
  /// Keeps the pitch, in the time domain: cheaper, for voices.
  case timeDomain = "time-domain"
  /// Lets the pitch follow the speed, as a tape does: an eighth is three octaves lower.
  ///
  /// libswresample. Every event is within half a sample of where it belongs.
  case varispeed
  /// Keeps the pitch roughly, at next to no cost.
  case lowQuality = "low-quality"
  /// Silence, exactly; what plays at speed 1 is heard.
  case mute

  /// Whether this version can do it.
  public var isAvailable: Bool {
    switch self {
    case .spectral, .varispeed, .mute: true
    case .timeDomain, .lowQuality: false
    }
  }
}

extension AudioRetimer {
  /// Name and version of the library behind `spectral`.
  public static var libraryVersion: (name: String, version: String) {
    ("librubberband", RUBBERBAND_VERSION)
  }
}
