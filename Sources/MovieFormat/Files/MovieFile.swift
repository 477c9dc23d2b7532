// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankLinuxSystem

/// The file of a recording, which grows under its own name.
///
/// It has its name from the start, and is a movie without tracks until it has its head, because it
/// is to be read while it grows. A file that is to be replaced stays, under another name, until the
/// recording holds something. From creation to end the file is open and locked. All work on it goes
/// through ``file``, because another file may have the name by then.
package struct MovieFile: ~Copyable {
  package typealias CreationError = FileCreationError

  /// A new file under a temporary name, open and locked.
  package struct Copy {
    package let path: String
    package let file: OpenFile
  }

  /// A file that lost its name to this one.
  private struct Replaced {
    let path: String
    /// Keeps it locked.
    let file: NamedFile
  }

  /// The name that the user gave, which is being written.
  package let writtenPath: String
  /// The file itself.
  package private(set) var file: OpenFile
  private var replaced: Replaced?
  /// Keeps a descriptor free for ``prepareToFinish()``.
  private var spare: OpenFile?

  /// Creates the file, with nothing in it.
  ///
  /// - Parameters:
  ///   - target: The path to write to.
  ///   - overwrites: Whether a file that exists may be replaced; it is, by ``dropReplaced()``.
  /// - Throws: `CreationError` when the name is taken, another process is writing the file of this
  ///   name, or the folder does not exist or may not be written to.
  package init(creating target: String, overwrites: Bool) throws(CreationError) {
    let reserved = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if reserved < 0, errno == EMFILE || errno == ENFILE {
      throw CreationError(path: target, errorNumber: errno)
    }
    spare = reserved < 0 ? nil : OpenFile(adopting: reserved, path: "/dev/null")
    // Another process may take or leave the name at any time.
    for _ in 0..<100 {
      guard let created = try Self.create(target, overwrites) else { continue }
      (file, replaced, writtenPath) = (created.file, created.replaced, target)
      return
    }
    throw CreationError(path: target, errorNumber: EBUSY)
  }

  deinit {
    Self.drop(replaced)
    // Not left to the last reference: the next command may use the file at once.
    FileLock.release(file.descriptor)
  }

  /// Creates the file under a temporary name, and gives it its own when it is locked; nil where the
  /// name changed hands meanwhile.
  private static func create(
    _ target: String, _ overwrites: Bool
  ) throws(CreationError) -> (file: OpenFile, replaced: Replaced?)? {
    guard overwrites || FileIdentity(ofName: target) == nil else {
      throw CreationError(path: target, errorNumber: EEXIST)
    }
    let old = overwrites ? try NamedFile.locking(target) : nil
    let new = try Self.copy(
      beside: target, old == nil ? TemporaryName.part : TemporaryName.old, mode: old?.mode)
    // Where not even this finds room, the first picture will say so.
    EmptyMovie.bytes.withUnsafeBytes {
      _ = write(new.file.descriptor, $0.baseAddress, $0.count)
    }
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
      throw CreationError(path: target, errorNumber: failure)
    }
    return nil
  }

  private static func copy(
    beside target: String, _ kind: String, mode: mode_t?
  ) throws(CreationError) -> Copy {
    let created = try TemporaryName.create(beside: target, kind)
    // Locked before the file has a name that other processes look for.
    _ = FileLock.take(created.descriptor)
    if let mode { fchmod(created.descriptor, mode) }
    return Copy(path: created.path, file: OpenFile(adopting: created.descriptor, path: target))
  }

  /// Releases the descriptor that was kept, so that the file can be read back at its end, however
  /// many others are open by then.
  package mutating func prepareToFinish() { spare = nil }

  /// Whether the name still leads to the file.
  package var hasItsName: Bool { file.hasItsName }

  /// Removes what was written, and gives what it was to replace its name back; for a recording
  /// that holds nothing.
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
      // Where the name is another file's by now, the old one stays aside.
      FileName.remove(target, of: identity)
    }
  }

  /// Removes the file that this one replaces: from now on there is something in its place.
  package mutating func dropReplaced() { Self.drop(replaced.take()) }

  private static func drop(_ old: Replaced?) {
    guard let old, FileIdentity(ofName: old.path) == old.file.identity else { return }
    unlink(old.path.systemPath)
  }

  /// Begins a copy of the file, which may take its place.
  ///
  /// - Returns: The copy; give it to ``replace(by:)`` or ``discard(_:)``.
  /// - Throws: `CreationError` when it cannot be created.
  package borrowing func beginCopy() throws(CreationError) -> Copy {
    var status = stat()
    let mode: mode_t? = fstat(file.descriptor, &status) == 0 ? status.st_mode & 0o777 : nil
    return try Self.copy(beside: writtenPath, TemporaryName.part, mode: mode)
  }

  /// Removes a copy that has not become the file.
  package static func discard(_ copy: Copy) { unlink(copy.path.systemPath) }

  /// Puts a copy in the file's place, which must still have its name; on failure the copy is removed.
  ///
  /// - Throws: `CreationError`; the file is then as it was.
  package mutating func replace(by copy: Copy) throws(CreationError) {
    guard let identity = file.identity else {
      throw CreationError(path: writtenPath, errorNumber: EBADF)
    }
    let taken = FileName.take(writtenPath, for: copy.path, from: identity)
    guard taken.failure == 0 else {
      Self.discard(copy)
      throw CreationError(path: writtenPath, errorNumber: taken.failure)
    }
    FileName.remove(taken.old, of: identity)
    file = copy.file
  }

  /// Where the file lies that a recording was to replace when its process was killed; nil where
  /// there is none.
  package static func replaced(by path: String) -> String? {
    let (folder, name) = path.folderAndName
    guard let directory = opendir((folder.isEmpty ? "." : folder).systemPath) else { return nil }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let found = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(systemBytes: bytes.prefix { $0 != 0 })
      }
      if TemporaryName.process(in: found, TemporaryName.old, of: name) != nil {
        return folder + found
      }
    }
    return nil
  }
}
