// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankV4L2

/// The clock that V4L2 stamps frames with, CLOCK_MONOTONIC.
package enum CaptureClock {
  /// Now, in nanoseconds.
  package static func nanoseconds() -> Int64 { MonotonicClock.nanoseconds() }

  /// Now, in microseconds, rounded down.
  package static func microseconds() -> Int64 { nanoseconds() / 1_000 }

  /// Sleeps for a moment, for who looks again and again whether something has happened.
  static func pause() { sleep(untilMicroseconds: microseconds() + 200) }

  /// Sleeps until an instant of this clock; returns at once when it has passed.
  static func sleep(untilMicroseconds time: Int64) {
    var deadline = timespec(tv_sec: Int(time / 1_000_000), tv_nsec: Int(time % 1_000_000) * 1_000)
    while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nil) == EINTR {}
  }
}

extension Int64 {
  /// The whole number before the point, or the nearest there is: a driver's times may be
  /// anything, and none of them may trap.
  package init(saturating value: Double) {
    if value.isNaN {
      self = 0
    } else if value >= 0x1p63 {
      self = .max
    } else if value < -0x1p63 {
      self = .min
    } else {
      self = Int64(value)
    }
  }

  /// The product, or the nearest number there is.
  package func saturatingMultiplied(by factor: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: factor)
    guard overflow else { return product }
    return (self < 0) == (factor < 0) ? .max : .min
  }
}
