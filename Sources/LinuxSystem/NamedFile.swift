// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc
package import OvercrankMediaCore

/// A directory entry.
///
/// The file with this name is locked if possible.
///
/// While this value exists, no other process that uses ``FileLock`` replaces the file.
package struct NamedFile: Sendable {
  package let identity: FileIdentity
  /// The permission bits of the file; nil for a symbolic link.
  package let mode: UInt32?
  /// The locked file.
  ///
  /// Nil for a symbolic link, or if the user may not read the file.
  private let lock: OpenFile?

  private static let attempts = 100

  /// Locks the file with this name.
  ///
  /// Returns nil if no file has the name.
  ///
  /// - Throws: `CallFailure` with `EBUSY` if another process holds the lock, `EISDIR` for
  ///   a directory, `ENOTSUP` for any other non-regular file.
  package static func locking(_ name: String) throws(CallFailure) -> NamedFile? {
    for _ in 0..<attempts {
      guard let status = SystemFiles.entryStatus(name) else { return nil }
      let identity = FileIdentity(status)
      switch status.st_mode & S_IFMT {
      case S_IFLNK: return NamedFile(identity: identity, mode: nil, lock: nil)
      case S_IFREG: break
      case S_IFDIR: throw CallFailure.creating(name, EISDIR)
      default: throw CallFailure.notRegular(name)
      }
      let mode = status.st_mode & 0o777
      let descriptor = open(name.systemPath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
      if descriptor < 0 {
        if errno == ENOENT || errno == ELOOP { continue }
        return NamedFile(identity: identity, mode: mode, lock: nil)
      }
      let file = OpenFile(adopting: descriptor, path: name)
      guard FileLock.take(descriptor) else {
        throw CallFailure.creating(name, EBUSY)
      }
      // Another process may have given this name to a different file before the lock was taken, so
      // the name is checked again.
      if file.identity == identity, FileIdentity(ofName: name) == identity {
        return NamedFile(identity: identity, mode: mode, lock: file)
      }
    }
    throw CallFailure.creating(name, EBUSY)
  }

  /// Releases the lock of the file.
  ///
  /// Call this before this value is destroyed. Otherwise a child process, which shares the
  /// descriptor from fork(2) to exec(2), could hold the lock longer.
  package func unlock() {
    if let lock { FileLock.release(lock.descriptor) }
  }
}

/// Atomic operations on file names.
package enum FileName {
  /// Renames a file to a free name.
  ///
  /// Returns 0 or the errno, which is `EEXIST` if the name is taken.
  package static func claim(_ name: String, for file: String) -> Int32 {
    let (from, to) = (file.systemPath, name.systemPath)
    let failure = -CLinuxSystem_claim(from, to)
    guard isUnsupported(failure) else { return failure }
    // If `RENAME_NOREPLACE` is not supported, a hard link is used, because link(2) also fails with
    // EEXIST if the name is taken.
    if link(from, to) == 0 {
      unlink(from)
      return 0
    }
    let reason = errno
    guard reason == EPERM || reason == EOPNOTSUPP else { return reason }
    // Some file systems, such as FAT, have no hard links. There, the name is first tested and then
    // taken, which is not atomic.
    guard FileIdentity(ofName: name) == nil else { return EEXIST }
    return rename(from, to) == 0 ? 0 : errno
  }

  /// Gives a file the name of another file, and renames that other file.
  ///
  /// If the name does not belong to the file `old`, nothing changes and the result is `ESTALE`.
  ///
  /// - Parameters:
  ///   - name: The name to take over.
  ///   - file: The file that receives the name.
  ///   - old: The identity of the file that is expected under the name.
  /// - Returns: The errno (0 for success), and the path that the old file has afterwards.
  package static func take(
    _ name: String, for file: String, from old: FileIdentity
  ) -> (failure: Int32, old: String) {
    let failure = -CLinuxSystem_exchange(file.systemPath, name.systemPath)
    if failure == 0 {
      if FileIdentity(ofName: file) == old { return (0, file) }
      _ = CLinuxSystem_exchange(file.systemPath, name.systemPath)
      return (ESTALE, file)
    }
    guard isUnsupported(failure) else { return (failure == ENOENT ? ESTALE : failure, file) }
    guard FileIdentity(ofName: name) == old else { return (ESTALE, file) }
    let aside = TemporaryName.free(beside: name, TemporaryName.old)
    let isLinked = link(name.systemPath, aside.systemPath) == 0
    guard isLinked || rename(name.systemPath, aside.systemPath) == 0 else { return (errno, file) }
    guard rename(file.systemPath, name.systemPath) == 0 else {
      let reason = errno
      if isLinked { unlink(aside.systemPath) } else { rename(aside.systemPath, name.systemPath) }
      return (reason, file)
    }
    return (0, aside)
  }

  /// Removes the file with a name, unless the name now belongs to a file with another identity.
  package static func remove(_ name: String, of identity: FileIdentity?) {
    guard let identity, FileIdentity(ofName: name) == identity else { return }
    // The name could be given to another file between the test and the removal. The file is
    // therefore moved to a private name, its identity is tested again there, and then it is
    // removed.
    let aside = TemporaryName.free(beside: name, TemporaryName.gone)
    guard CLinuxSystem_claim(name.systemPath, aside.systemPath) == 0 else {
      unlink(name.systemPath)
      return
    }
    if FileIdentity(ofName: aside) == identity {
      unlink(aside.systemPath)
    } else {
      _ = claim(name, for: aside)
    }
  }

  /// Whether the errno means that the kernel or the file system does not support the call.
  private static func isUnsupported(_ failure: Int32) -> Bool {
    failure == EINVAL || failure == ENOSYS || failure == EOPNOTSUPP
  }
}
