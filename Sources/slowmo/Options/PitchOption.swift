// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The value of `--pitch`: an algorithm, and with `low-quality:snap` the leave to play at the nearest
/// speed that it has.
struct PitchOption: ExpressibleByArgument {
  let algorithm: AudioTimePitchAlgorithm
  let otherSpeeds: UnsupportedSpeedPolicy

  private static let snapping = "\(AudioTimePitchAlgorithm.lowQuality.rawValue):snap"

  init(_ algorithm: AudioTimePitchAlgorithm) {
    (self.algorithm, otherSpeeds) = (algorithm, .refused)
  }

  init?(argument: String) {
    if argument == Self.snapping {
      (algorithm, otherSpeeds) = (.lowQuality, .snapped)
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
