// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import Synchronization

/// The clock of a camera that delivers frames as fast as they are consumed.
///
/// The clock shows the time of the latest consumed frame. The camera's audio uses the same clock.
/// If the audio has a consumer, frames wait for the audio.
package final class FrameClock: Sendable {
  private let latest = Atomic<Int64>(0)
  /// The time up to which audio was delivered, in microseconds.
  ///
  /// It is `.max`, so that frames never wait, if the audio has no consumer.
  private let heard = Atomic<Int64>(.max)
  /// Frames may be ahead of the audio by one frame period plus this time, in microseconds.
  private static let lead: Int64 = 50_000

  package init() {}

  /// The time of the latest frame in microseconds.
  ///
  /// Before the first frame, it is the system's monotonic time.
  package func microseconds() -> Int64 {
    let time = latest.load(ordering: .acquiring)
    return time > 0 ? time : MonotonicClock.microseconds()
  }

  /// The start time for a new stream, in microseconds.
  ///
  /// It is never earlier than a time that this clock has shown.
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

  /// Whether a frame must wait because the audio up to the frame's time is not delivered yet.
  ///
  /// `due` is the frame's time and `period` the frame period, in microseconds.
  func isAheadOfAudio(atMicroseconds due: Int64, period: Int64) -> Bool {
    due &- period &- Self.lead > heard.load(ordering: .acquiring)
  }
}
