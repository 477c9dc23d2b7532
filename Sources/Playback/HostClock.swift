// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
public import OvercrankMediaCore

/// The clock by which a player shows frames and plays samples.
public protocol HostClock: Sendable {
  /// The current time.
  var now: MediaTime { get }

  /// Waits until a time; may return earlier.
  func sleep(until time: MediaTime)
}

/// The machine's monotonic clock, `CLOCK_MONOTONIC`, which also stamps captured frames.
public struct MonotonicHostClock: HostClock {
  /// Creates the clock.
  public init() {}

  /// The current time in nanoseconds.
  public var now: MediaTime { MediaTime(nanoseconds: MonotonicClock.nanoseconds()) }

  /// Sleeps until a time on this clock.
  public func sleep(until time: MediaTime) {
    MonotonicClock.sleep(untilMicroseconds: time.wholeMicroseconds)
  }
}
