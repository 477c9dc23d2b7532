// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// The file of a recording, which has its final name from the beginning.
///
/// The file can therefore be read before the recording ends. Until its header is written, it is a
/// movie without tracks. A file that it replaces is kept under another name until the recording
/// contains data. The new file stays open and locked until the recording ends. All access uses
/// ``file`` and not the name, because the name may later belong to another file.
package struct MovieFile: ~Copyable {
  /// A new, open and locked file with a temporary name, which may later replace this file.
  package struct Copy {
    package let path: String
    package let file: OpenFile
  }

  /// The file that this recording replaces, under a temporary name.
  private struct Replaced {
    let path: String
    /// The replaced file, which stays locked.
    let file: NamedFile
  }

  /// The path of the file as the user gave it.
  package let writtenPath: String
  /// The open file.
  package private(set) var file: OpenFile
  private var replaced: Replaced?
  /// A file descriptor that is held in reserve.
  ///
  /// ``prepareToFinish()`` closes this descriptor, so that one more file can be opened.
  private var spare: OpenFile?

  /// Creates the file as a movie without tracks.
  ///
  /// - Parameters:
  ///   - target: The path to write to.
  ///   - overwrites: Whether an existing file may be replaced. The old file is removed by
  ///     ``dropReplaced()``.
  /// - Throws: `CallFailure` if the name already exists, if another process is writing the file,
  ///   or if the directory is missing or not writable.
  package init(creating target: String, overwrites: Bool) throws(CallFailure) {
    let reserved = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if reserved < 0, errno == EMFILE || errno == ENFILE {
      throw .creating(target, errno)
    }
    spare = reserved < 0 ? nil : OpenFile(adopting: reserved, path: "/dev/null")
    TemporaryName.removeEarlier(beside: target)
    // Between two steps, another process may create or remove a file with this name, so creation is
    // retried.
    for _ in 0..<100 {
      guard let created = try Self.create(target, overwrites) else { continue }
      (file, replaced, writtenPath) = (created.file, created.replaced, target)
      return
    }
    throw .creating(target, EBUSY)
  }

  deinit {
    Self.drop(replaced)
    // Other references to the open file may keep it open and locked. The lock is released
    // explicitly, because another process may need the file now.
    FileLock.release(file.descriptor)
  }

  /// Creates the file under a temporary name, locks it, and then renames it.
  ///
  /// - Returns: Nil if the name now belongs to another file.
  private static func create(
    _ target: String, _ overwrites: Bool
  ) throws(CallFailure) -> (file: OpenFile, replaced: Replaced?)? {
    guard overwrites || FileIdentity(ofName: target) == nil else {
      throw .creating(target, EEXIST)
    }
    let old = overwrites ? try NamedFile.locking(target) : nil
    let new = try Self.copy(
      beside: target, old == nil ? TemporaryName.part : TemporaryName.old, mode: old?.mode)
    // A full disk is not reported here, because writing the first frame will report it.
    try? RandomAccessFile(new.file).write(MovieIndex.emptyMovie, at: 0)
    fdatasync(new.file.descriptor)
    let failure: Int32
    if let old {
      let taken = FileName.take(target, for: new.path, from: old.identity)
      if taken.failure == 0 { return (new.file, Replaced(path: taken.old, file: old)) }
      failure = taken.failure
    } else {
      failure = FileName.claim(target, for: new.path)
      if failure == 0 { return (new.file, nil) }
    }
    unlink(new.path.systemPath)
    guard failure == ESTALE || failure == EEXIST else {
      throw .creating(target, failure)
    }
    return nil
  }

  private static func copy(
    beside target: String, _ kind: String, mode: mode_t?
  ) throws(CallFailure) -> Copy {
    // The lock is taken before the rename, because other processes can find the file by name
    // afterwards.
    let created = try TemporaryName.createLocked(beside: target, kind, named: target)
    if let mode { fchmod(created.file.descriptor, mode) }
    return Copy(path: created.path, file: created.file)
  }

  /// Closes the file descriptor that was held in reserve.
  ///
  /// At the end, the file is opened a second time to read it back. With the freed descriptor, this
  /// works even if the process has reached its limit of open files.
  package mutating func prepareToFinish() { spare = nil }

  /// Whether the file name still belongs to this file.
  package var hasItsName: Bool { file.hasItsName }

  /// Deletes the file of a recording without data, and restores the name of the replaced file.
  package consuming func discard() {
    let (target, file) = (writtenPath, file)
    guard let old = replaced.take(), let identity = file.identity else {
      return FileName.remove(target, of: file.identity)
    }
    defer { old.file.unlock() }
    let taken = FileName.take(target, for: old.path, from: identity)
    if taken.failure == 0 {
      FileName.remove(taken.old, of: identity)
    } else if FileName.claim(target, for: old.path) != 0 {
      // If the name now belongs to another file, the replaced file keeps its temporary name.
      FileName.remove(target, of: identity)
    }
  }

  /// Deletes the replaced file.
  ///
  /// Call this once the recording contains data.
  package mutating func dropReplaced() { Self.drop(replaced.take()) }

  private static func drop(_ old: Replaced?) {
    guard let old, FileIdentity(ofName: old.path) == old.file.identity else { return }
    unlink(old.path.systemPath)
  }

  /// Creates an empty file that may later replace this file.
  ///
  /// - Returns: The new file, to be passed to ``replace(by:)`` or ``discard(_:)``.
  /// - Throws: `CallFailure` if the file cannot be created.
  package borrowing func beginCopy() throws(CallFailure) -> Copy {
    var status = stat()
    let mode: mode_t? = fstat(file.descriptor, &status) == 0 ? status.st_mode & 0o777 : nil
    return try Self.copy(beside: writtenPath, TemporaryName.part, mode: mode)
  }

  /// Deletes a copy.
  package static func discard(_ copy: Copy) { unlink(copy.path.systemPath) }

  /// Replaces the file with a copy.
  ///
  /// - Throws: `CallFailure` if this fails, or if the name now belongs to another file. The copy
  ///   is then deleted, and this file is unchanged.
  package mutating func replace(by copy: Copy) throws(CallFailure) {
    guard let identity = file.identity else {
      throw .creating(writtenPath, EBADF)
    }
    let taken = FileName.take(writtenPath, for: copy.path, from: identity)
    guard taken.failure == 0 else {
      Self.discard(copy)
      throw .creating(writtenPath, taken.failure)
    }
    FileName.remove(taken.old, of: identity)
    file = copy.file
  }

  /// The path of the file that a recording was replacing when it was killed.
  ///
  /// Nil if it was replacing none.
  package static func replaced(by path: String) -> String? {
    let name = path.lastPathComponent
    return SystemFiles.entries(in: path.parentDirectory)
      .first { TemporaryName.process(in: $0, TemporaryName.old, of: name) != nil }
      .map { path.replacingLastPathComponent(with: $0) }
  }
}
