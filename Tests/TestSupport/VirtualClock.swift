// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
package import OvercrankMediaCore
import OvercrankPlayback
import Synchronization

/// A clock that stands still until a test advances it.
package final class VirtualClock: HostClock {
  private let nanoseconds: Mutex<Int64>

  package init(at nanoseconds: Int64 = 5_000_000_000) { self.nanoseconds = Mutex(nanoseconds) }

  package var now: MediaTime { MediaTime(nanoseconds: nanoseconds.withLock { $0 }) }

  package func set(_ time: Int64) { nanoseconds.withLock { $0 = time } }

  package func advance(by time: Int64) { nanoseconds.withLock { $0 += time } }

  package func sleep(until time: MediaTime) { MonotonicClock.pause() }
}
