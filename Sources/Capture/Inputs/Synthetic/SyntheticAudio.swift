// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the synthetic camera hears: a quiet tone, and a click at each whole second.
///
/// The sound is a function of the sample's number alone, and sample 0 is at the instant of
/// frame 0, so that click and flash share an instant.
package struct SyntheticAudio: Sendable {
  /// Samples per second and channel.
  package static let sampleRate = 48_000
  /// The number of channels.
  package static let channelCount = 1
  /// The tone's frequency in hertz.
  package static let toneFrequency = 440
  /// The click's length in samples: 2 ms.
  static let clickLength = 96

  package init() {}

  /// Samples from number `start` on, between -1 and 1; silence before sample 0.
  package func samples(from start: Int64, count: Int) -> [Float] {
    (0..<count).map { sample(start + Int64($0)) }
  }

  /// A sample by its number; silence before sample 0.
  func sample(_ number: Int64) -> Float {
    guard number >= 0 else { return 0 }
    let inSecond = Int(number % Int64(Self.sampleRate))
    // A whole number of periods fits a second, so the phase needs no more than this.
    let phase =
      2 * Double.pi * Double(inSecond * Self.toneFrequency % Self.sampleRate)
      / Double(Self.sampleRate)
    var value = 0.1 * sin(phase)
    if inSecond < Self.clickLength {
      let decay = 1 - Double(inSecond) / Double(Self.clickLength)
      value += inSecond % 12 < 6 ? 0.8 * decay : -0.8 * decay
    }
    return Float(value)
  }
}
