// SPDX-License-Identifier: Apache-2.0

import CRubberBand
public import OvercrankMediaCore

/// The algorithm for audio at speeds other than 1.
///
/// The names follow `AVAudioTimePitchAlgorithm`. The raw values are stable and may be stored.
public enum AudioTimePitchAlgorithm: String, Hashable, Sendable, CaseIterable {
  /// Keeps the pitch, in the frequency domain: best for music, most expensive.
  ///
  /// Rubber Band's R3 engine, controlled to follow speed changes and ramps. Transients such as
  /// claps and drums play at their original speed, for a shorter time if they are close together.
  /// Their timing error is at most 2 ms at half speed and 10 ms at 1/8.
  case spectral
  /// Keeps the pitch, in the time domain. It costs less than `spectral`, and suits speech from half
  /// to double speed.
  ///
  /// WSOLA with windows of 20 ms at the same positions in all channels. Transients keep their shape
  /// and timing. At other speeds, or in dense music, repetitions become audible.
  case timeDomain = "time-domain"
  /// Changes the pitch with the speed, like a tape: 1/8 speed is three octaves lower.
  ///
  /// Constant speeds use libswresample. Ramps use a windowed sinc, and so do speeds whose fraction
  /// has too large a numerator for libswresample. The timing error is at most 0.01 samples.
  case varispeed
  /// Keeps the pitch at very low cost and without look-ahead, for playback at seven speeds only.
  ///
  /// See ``AudioRetimer/lowQualitySpeeds``. Grains of 20 ms with crossfades of 8 ms; transients may
  /// be doubled or lost.
  case lowQuality = "low-quality"
  /// Replaces retimed content with silence; content at speed 1 stays audible.
  case mute

  /// The speeds at which the algorithm sounds good; nil if it sounds good at all supported speeds.
  ///
  /// Outside this range, short pieces of audio are audibly repeated or lost.
  public var recommendedSpeeds: ClosedRange<Speed>? {
    self == .timeDomain ? Speed(1, over: 2)...Speed(2) : nil
  }

  /// True if one renderer continues across speed changes; false if each speed needs a new renderer.
  var followsBreakpoints: Bool {
    switch self {
    case .spectral, .timeDomain, .lowQuality: true
    case .varispeed, .mute: false
    }
  }
}

extension AudioRetimer {
  /// The version of Rubber Band, which renders `spectral`.
  public static var libraryVersion: LibraryVersion {
    LibraryVersion("librubberband", RUBBERBAND_VERSION)
  }
}
