// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc

/// The file that has a name, locked where it can be: as long as this value lives, no other process
/// of this program replaces it.
package struct NamedFile: Sendable {
  package let identity: FileIdentity
  /// Its permissions; nil for a symbolic link.
  package let mode: UInt32?
  /// Holds the lock; nil for a symbolic link, and for a file that this user may not read.
  private let lock: OpenFile?

  private static let attempts = 100

  /// Locks the file that has a name; nil where the name is free.
  ///
  /// - Throws: `FileCreationError` with `EBUSY` where another process has it locked, `EISDIR` for a
  ///   folder, and for what is no ordinary file.
  package static func locking(_ name: String) throws(FileCreationError) -> NamedFile? {
    for _ in 0..<attempts {
      var status = stat()
      guard lstat(name.systemPath, &status) == 0 else { return nil }
      let identity = FileIdentity(status)
      switch status.st_mode & S_IFMT {
      case S_IFLNK: return NamedFile(identity: identity, mode: nil, lock: nil)
      case S_IFREG: break
      case S_IFDIR: throw FileCreationError(path: name, errorNumber: EISDIR)
      default: throw FileCreationError(noFile: name)
      }
      let mode = status.st_mode & 0o777
      let descriptor = open(name.systemPath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
      if descriptor < 0 {
        if errno == ENOENT || errno == ELOOP { continue }
        return NamedFile(identity: identity, mode: mode, lock: nil)
      }
      let file = OpenFile(adopting: descriptor, path: name)
      guard FileLock.take(descriptor) else {
        throw FileCreationError(path: name, errorNumber: EBUSY)
      }
      // Another file may have taken the name before the lock was taken.
      if file.identity == identity, FileIdentity(ofName: name) == identity {
        return NamedFile(identity: identity, mode: mode, lock: file)
      }
    }
    throw FileCreationError(path: name, errorNumber: EBUSY)
  }

  /// Releases the lock now: a child of this process that has not begun its program yet has the
  /// descriptor, too, and would keep the lock for a moment longer.
  package func unlock() {
    if let lock { FileLock.release(lock.descriptor) }
  }
}

/// Names of files, changed in one step.
package enum FileName {
  /// Renames a file unless the new name is taken; 0, or the errno: `EEXIST` where it is.
  package static func claim(_ name: String, for file: String) -> Int32 {
    let (from, to) = (file.systemPath, name.systemPath)
    let failure = -CLinuxSystem_claim(from, to)
    guard isUnsupported(failure) else { return failure }
    // link(2) refuses a name that is taken, too.
    if link(from, to) == 0 {
      unlink(from)
      return 0
    }
    let reason = errno
    guard reason == EPERM || reason == EOPNOTSUPP else { return reason }
    // Some file systems have no hard links either.
    guard FileIdentity(ofName: name) == nil else { return EEXIST }
    return rename(from, to) == 0 ? 0 : errno
  }

  /// Gives a file a name, and the file that has it another.
  ///
  /// Where another file than the expected one is found under the name, nothing changes: `ESTALE`.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - file: The file that gets it.
  ///   - old: The file that is expected to have it.
  /// - Returns: The errno, which is 0 for a success, and the path under which the old file then is.
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

  /// Removes a file, unless another one has its name by now.
  package static func remove(_ name: String, of identity: FileIdentity?) {
    guard let identity, FileIdentity(ofName: name) == identity else { return }
    // Checked once more under a name that no other process changes.
    let aside = TemporaryName.free(beside: name, TemporaryName.part)
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

  /// Whether a file system or kernel does not have a call.
  private static func isUnsupported(_ failure: Int32) -> Bool {
    failure == EINVAL || failure == ENOSYS || failure == EOPNOTSUPP
  }
}
