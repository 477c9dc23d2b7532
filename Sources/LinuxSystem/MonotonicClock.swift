// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The clock of the kernel's frame and audio timestamps, `CLOCK_MONOTONIC`.
package enum MonotonicClock {
  /// The current time in nanoseconds.
  package static func nanoseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
  }

  /// The current time in microseconds, rounded down.
  package static func microseconds() -> Int64 { nanoseconds() / 1_000 }

  /// Sleeps for 200 µs, for use in polling loops.
  package static func pause() { sleep(untilMicroseconds: microseconds() + 200) }

  /// Sleeps until a time on this clock.
  ///
  /// Returns at once if the time has passed.
  package static func sleep(untilMicroseconds time: Int64) {
    var deadline = timespec(tv_sec: Int(time / 1_000_000), tv_nsec: Int(time % 1_000_000) * 1_000)
    while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nil) == EINTR {}
  }
}
