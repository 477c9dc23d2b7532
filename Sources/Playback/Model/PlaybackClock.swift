// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// The relation between host time and the output sample that is heard.
///
/// The count of played samples is the clock, because a sound card's clock differs from the host's.
/// Between two reports of the sound card, the clock runs at the nominal sampling rate.
struct PlaybackClock: Sendable {
  let sampleRate: Int
  private var anchor: AudioSinkTiming
  /// False until the output plays its first sample.
  private(set) var isRunning: Bool

  /// Starts at sample 0.
  ///
  /// Pass false for `isRunning` if the output reports when it starts.
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

  /// Adjusts the clock to a position that the output reports.
  ///
  /// A difference of up to 5 ms is taken as jitter of the report, and corrected gradually. A larger
  /// difference is a gap in the playback, and corrected at once.
  mutating func follow(_ timing: AudioSinkTiming) {
    let error = timing.sample - sample(at: timing.hostTime)
    guard isRunning, error.magnitude <= Rational(Int128(sampleRate), over: 200) else {
      anchor = timing
      isRunning = true
      return
    }
    guard error != .zero else { return }
    // The correction is rounded to thousandths of a sample, so that the fractions stay short.
    let step = (try? (error * 1_000 / 16).rounded(.halfAwayFromZero)) ?? 0
    let sample = self.sample(at: timing.hostTime) + Rational(step, over: 1_000)
    let units = (try? (sample * 1_000).rounded(.halfAwayFromZero)) ?? 0
    anchor = AudioSinkTiming(sample: Rational(units, over: 1_000), hostTime: timing.hostTime)
  }

  /// Continues on the host's clock from the current position.
  mutating func release(at time: MediaTime) {
    anchor = AudioSinkTiming(sample: sample(at: time), hostTime: time)
    isRunning = true
  }
}
