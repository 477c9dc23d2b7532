// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An open file, shared by several parts of the program.
///
/// Renaming or deleting the file does not affect it. The descriptor is closed with the last
/// reference.
///
/// swift-system's `FileDescriptor` lacks most of the calls that are needed (locks, syncs,
/// reservations, exchanges of names), so the descriptor is stored as a plain number.
package final class OpenFile: Sendable {
  /// The path for messages.
  ///
  /// The file may have been renamed since.
  package let path: String
  package let descriptor: Int32

  /// Takes ownership of an open descriptor.
  package init(adopting descriptor: Int32, path: String) {
    (self.descriptor, self.path) = (descriptor, path)
  }

  deinit { close(descriptor) }

  package var identity: FileIdentity? { FileIdentity(descriptor) }

  /// Whether the path still leads to this file.
  package var hasItsName: Bool {
    guard let identity else { return false }
    return FileIdentity(at: path) == identity
  }

  /// A path that reopens this file, even if its name now belongs to another file.
  package var pathToReopen: String {
    let link = "/proc/self/fd/\(descriptor)"
    // Without procfs, the name is the only way to reopen the file.
    return access(link, F_OK) != 0 && hasItsName ? path : link
  }

  /// The path that the open file has now, read from /proc/self/fd.
  ///
  /// Nil if the file was deleted.
  package var currentPath: String? {
    let name = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4_096) { buffer in
      guard let start = buffer.baseAddress else { return "" }
      let count = readlink("/proc/self/fd/\(descriptor)", start, buffer.count)
      return String(systemBytes: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) })
    }
    guard let identity, FileIdentity(at: name) == identity else { return nil }
    return name
  }
}

/// The identity of a file, independent of its names: device and inode number.
package struct FileIdentity: Hashable, Sendable {
  private let device: dev_t
  private let number: ino_t

  init(_ status: stat) { (device, number) = (status.st_dev, status.st_ino) }

  /// The identity of an open file; nil for an invalid descriptor.
  package init?(_ descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  /// The identity of the file at a path, with symbolic links followed; nil if none exists.
  package init?(at path: String) {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return nil }
    self.init(status)
  }

  /// The identity of a directory entry.
  ///
  /// A symbolic link is not followed. Nil if the name is free.
  package init?(ofName path: String) {
    guard let status = SystemFiles.entryStatus(path) else { return nil }
    self.init(status)
  }
}

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
