// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankDeviceDiscovery
import OvercrankMediaCore

/// The audio of the synthetic camera: a quiet tone, and a click at each contact of the ball.
///
/// Each sample depends only on its index. Sample 0 has the time of frame 0. A click starts with the
/// first sample at or after the contact.
package struct SyntheticAudio: Sendable {
  /// Samples per second and channel.
  package static let sampleRate = 48_000
  /// The number of audio channels.
  package static let channelCount = 1
  /// The tone's frequency in hertz.
  package static let toneFrequency = 440
  /// The click's length in samples: 2 ms.
  static let clickLength = 96

  /// The ball's period in samples is `samplesPerPeriod` / `periodScale`.
  private let samplesPerPeriod: UInt64
  private let periodScale: UInt64

  /// Creates audio that clicks whenever a ball touches the ground.
  package init(of ball: BouncingBall = BouncingBall()) {
    let samples = ball.period * Rational(Int64(Self.sampleRate))
    samplesPerPeriod = UInt64(clamping: samples.numerator)
    periodScale = UInt64(clamping: samples.denominator)
  }

  /// Returns `count` samples that begin at the index `start`, with values from -1 to 1.
  ///
  /// Samples before index 0 are silence.
  package func samples(from start: Int64, count: Int) -> [Float] {
    (0..<count).map { sample(start + Int64($0)) }
  }

  /// The sample with an index.
  ///
  /// Samples before index 0 are silence.
  package func sample(_ number: Int64) -> Float {
    guard number >= 0 else { return 0 }
    let inSecond = Int(number % Int64(Self.sampleRate))
    // A second contains a whole number of tone periods, so the phase depends only on the sample's
    // index within its second.
    let phase =
      2 * Double.pi * Double(inSecond * Self.toneFrequency % Self.sampleRate)
      / Double(Self.sampleRate)
    var value = 0.1 * sin(phase)
    let sinceContact = samplesSinceContact(UInt64(number))
    if sinceContact < UInt64(Self.clickLength) {
      let decay = 1 - Double(sinceContact) / Double(Self.clickLength)
      value += sinceContact % 12 < 6 ? 0.8 * decay : -0.8 * decay
    }
    return Float(value)
  }

  /// The number of samples since the start of the last click, which marks a contact of the ball.
  ///
  /// It is 0 for the first sample at or after the contact.
  private func samplesSinceContact(_ number: UInt64) -> UInt64 {
    guard periodScale > 1 else { return number % samplesPerPeriod }
    // The position in the period is computed exactly, as a multiple of 1/`periodScale` sample. The
    // number of the sample times `periodScale` needs more than 64 bits.
    let scaled = number.multipliedFullWidth(by: periodScale)
    let rest = samplesPerPeriod.dividingFullWidth(
      (scaled.high % samplesPerPeriod, scaled.low)
    ).remainder
    return rest / periodScale
  }
}

extension SyntheticAudio: KnownAudio {
  package var sampleRate: Int { Self.sampleRate }
  package var channelCount: Int { Self.channelCount }

  package func makeReader() -> any KnownAudioReader { Reader(self) }

  private final class Reader: KnownAudioReader {
    private let audio: SyntheticAudio
    var end: Int64? { nil }

    init(_ audio: SyntheticAudio) { self.audio = audio }

    func read(_ count: Int, from start: Int64, into target: UnsafeMutablePointer<Float>) {
      for index in 0..<count { target[index] = audio.sample(start + Int64(index)) }
    }
  }
}
