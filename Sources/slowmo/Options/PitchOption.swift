// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The value of `--pitch`: the name of an algorithm.
///
/// `low-quality:snap` selects `low-quality`, and replaces each unsupported speed by the nearest
/// supported speed.
struct PitchOption: ExpressibleByArgument {
  let algorithm: AudioTimePitchAlgorithm
  let otherSpeeds: UnsupportedSpeedPolicy

  /// The value of `--pitch` that replaces unsupported speeds.
  static let snapping = "\(AudioTimePitchAlgorithm.lowQuality.rawValue):snap"

  init(_ algorithm: AudioTimePitchAlgorithm, otherSpeeds: UnsupportedSpeedPolicy = .refused) {
    (self.algorithm, self.otherSpeeds) = (algorithm, otherSpeeds)
  }

  init?(argument: String) {
    if argument == Self.snapping {
      self.init(.lowQuality, otherSpeeds: .snapped)
    } else if let algorithm = AudioTimePitchAlgorithm(rawValue: argument) {
      self.init(algorithm)
    } else {
      return nil
    }
  }

  var defaultValueDescription: String { algorithm.rawValue }

  static var allValueStrings: [String] {
    AudioTimePitchAlgorithm.allCases.flatMap {
      $0 == .lowQuality ? [$0.rawValue, snapping] : [$0.rawValue]
    }
  }
}
