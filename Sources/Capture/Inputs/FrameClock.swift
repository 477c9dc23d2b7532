// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import Synchronization

/// The clock of a camera that hands its frames over as fast as they are taken.
///
/// It shows the time of the latest frame that was taken, and stands still until the next. Sound
/// beside the pictures is heard by it, and frames wait for the sound that somebody listens to.
package final class FrameClock: Sendable {
  private let latest = Atomic<Int64>(0)
  /// Up to when sound was heard; no limit while nobody listens.
  private let heard = Atomic<Int64>(.max)
  /// How far frames may be ahead of the sound, besides a frame period.
  private static let lead: Int64 = 50_000

  package init() {}

  /// The time of the latest frame in microseconds; that of the machine before the first.
  package func microseconds() -> Int64 {
    let time = latest.load(ordering: .acquiring)
    return time > 0 ? time : MonotonicClock.microseconds()
  }

  /// A time from which a stream may begin, in microseconds: no earlier one was shown before.
  func startOfStream() -> Int64 {
    max(MonotonicClock.microseconds(), latest.load(ordering: .acquiring))
  }

  /// Shows the time of a frame, which is never earlier than before.
  func advance(toMicroseconds time: Int64) {
    latest.max(time, ordering: .acquiringAndReleasing)
  }

  /// Learns up to when sound was heard, in microseconds; `.max` where nobody listens any more.
  func didHear(untilMicroseconds time: Int64) { heard.store(time, ordering: .releasing) }

  /// Whether a frame that is due at a time must wait for the sound before it.
  func isAheadOfAudio(atMicroseconds due: Int64, period: Int64) -> Bool {
    due &- period &- Self.lead > heard.load(ordering: .acquiring)
  }
}
