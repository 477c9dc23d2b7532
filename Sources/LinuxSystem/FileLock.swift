// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The lock of a file that is being recorded, recovered or replaced.
///
/// An exclusive `flock(2)`, released when the holding process ends.
package enum FileLock {
  /// Another process may hold the lock for a moment while it inspects or replaces the file, so the
  /// lock is tried several times.
  private static let (attempts, pauseMicroseconds) = (20, UInt32(10_000))

  /// Locks an open file, and waits up to 200 ms for the lock.
  ///
  /// Returns true if the file was locked or the file system has no locks, and false if another
  /// process, or another open file of this process, holds the lock.
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

  /// Whether another process holds the lock of the file at a path.
  package static func isHeld(on path: String) -> Bool {
    let descriptor = open(path.systemPath, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    // Two processes may test the same file at once. With a shared lock, neither mistakes the other
    // for a process that writes the file.
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
  }
}
