// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The relation between host time and the output sample that is heard.
///
/// The samples that were played are the clock, because a sound card's clock differs from the host's.
/// Between two reports of the card, the clock runs at the nominal rate.
struct PlaybackClock: Sendable {
  let sampleRate: Int
  private var anchor: AudioSinkTiming
  /// False until the output plays its first sample.
  private(set) var isRunning: Bool

  /// Starts at sample 0; `isRunning` is false for an output that reports its own start.
  init(sampleRate: Int, start: MediaTime, isRunning: Bool) {
    self.sampleRate = sampleRate
    self.isRunning = isRunning
    anchor = AudioSinkTiming(sample: .zero, hostTime: start)
  }

  /// Returns the sample that is heard at a host time.
  func sample(at time: MediaTime) -> Rational {
    guard isRunning else { return anchor.sample }
    return max(.zero, anchor.sample + (time - anchor.hostTime) * Rational(Int64(sampleRate)))
  }

  /// Follows a report of the output.
  ///
  /// A small difference is jitter of the report, and is followed slowly. A large one is a gap in the
  /// playback, and is followed at once.
  mutating func follow(_ timing: AudioSinkTiming) {
    let error = timing.sample - sample(at: timing.hostTime)
    guard isRunning, error.magnitude <= Rational(Int128(sampleRate), over: 200) else {
      anchor = timing
      isRunning = true
      return
    }
    guard error != .zero else { return }
    // In thousandths of a sample, so that the fractions stay short.
    let step = (try? (error * 1_000 / 16).rounded(.halfAwayFromZero)) ?? 0
    let sample = self.sample(at: timing.hostTime) + Rational(step, over: 1_000)
    let units = (try? (sample * 1_000).rounded(.halfAwayFromZero)) ?? 0
    anchor = AudioSinkTiming(sample: Rational(units, over: 1_000), hostTime: timing.hostTime)
  }

  /// Continues by the host's clock.
  mutating func release(at time: MediaTime) {
    anchor = AudioSinkTiming(sample: sample(at: time), hostTime: time)
    isRunning = true
  }
}
