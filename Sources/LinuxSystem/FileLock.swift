// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The lock of a file that is being recorded, recovered or replaced: an exclusive `flock(2)`, which
/// ends with the process that holds it.
package enum FileLock {
  /// Another process may hold the lock for a moment, to look at a file or to replace it.
  private static let (attempts, pauseMicroseconds) = (20, UInt32(10_000))

  /// Locks an open file; false where another open file description holds its lock.
  ///
  /// Waits up to 200 ms for the lock. File systems that have no locks count as locked.
  package static func take(_ descriptor: Int32) -> Bool {
    for attempt in 1...attempts {
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
      guard errno == EWOULDBLOCK || errno == EINTR else { return true }
      if attempt < attempts { usleep(pauseMicroseconds) }
    }
    return false
  }

  /// Releases the lock of an open file.
  package static func release(_ descriptor: Int32) { flock(descriptor, LOCK_UN) }

  /// Whether the file that a path leads to is locked.
  package static func isHeld(on path: String) -> Bool {
    let descriptor = open(path.systemPath, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    // A shared lock: two processes that look at the same time do not see each other.
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
  }
}
