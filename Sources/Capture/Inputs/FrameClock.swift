// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import Synchronization

/// The clock of a camera that delivers frames as fast as they are consumed.
///
/// The clock shows the time of the latest consumed frame. The camera's audio uses the same clock,
/// and frames wait for the audio if it is consumed.
package final class FrameClock: Sendable {
  private let latest = Atomic<Int64>(0)
  /// The time up to which audio was delivered, in microseconds.
  ///
  /// No limit without an audio consumer.
  private let heard = Atomic<Int64>(.max)
  /// How far frames may be ahead of the audio, in microseconds, in addition to one frame period.
  private static let lead: Int64 = 50_000

  package init() {}

  /// The time of the latest frame in microseconds.
  ///
  /// The system's monotonic time before the first frame.
  package func microseconds() -> Int64 {
    let time = latest.load(ordering: .acquiring)
    return time > 0 ? time : MonotonicClock.microseconds()
  }

  /// A start time for a new stream, in microseconds.
  ///
  /// Never earlier than a time shown before.
  func startOfStream() -> Int64 {
    max(MonotonicClock.microseconds(), latest.load(ordering: .acquiring))
  }

  /// Advances the clock to the time of a frame.
  ///
  /// The clock never goes back.
  func advance(toMicroseconds time: Int64) {
    latest.max(time, ordering: .acquiringAndReleasing)
  }

  /// Records that audio was delivered up to a time in microseconds.
  ///
  /// `.max` means that audio has no consumer.
  func didHear(untilMicroseconds time: Int64) { heard.store(time, ordering: .releasing) }

  /// Whether a frame due at a time must wait for the audio before it.
  ///
  /// Times are in microseconds.
  func isAheadOfAudio(atMicroseconds due: Int64, period: Int64) -> Bool {
    due &- period &- Self.lead > heard.load(ordering: .acquiring)
  }
}
