// SPDX-License-Identifier: Apache-2.0
import Glibc
package import LinuxSystem

/// Where a recording is written, which grows under its own name.
///
/// It has its name from the start, and is a movie without tracks until it has its head, because it
/// is to be read while it grows. A file that is to be replaced stays until there is something in
/// its place.
package struct MovieFile: ~Copyable {
  package typealias CreationError = FileCreationError

  /// The name the user gave, which is being written.
  package let writtenPath: String
  /// Where the file that this one replaces lies until it does.
  private var replacedPath: String?

  /// Creates the file, with nothing in it.
  ///
  /// - Parameters:
  ///   - target: The path to write to.
  ///   - overwrites: Whether a file that exists may be replaced; it is, by ``dropReplaced()``.
  /// - Throws: `CreationError` when the name is taken, the folder does not exist or may not be
  ///   written to.
  package init(creating target: String, overwrites: Bool) throws(CreationError) {
    let path = target.systemPath
    var status = stat()
    let exists = lstat(path, &status) == 0
    if exists {
      guard overwrites else { throw CreationError(path: target, errorNumber: EEXIST) }
      guard status.st_mode & S_IFMT != S_IFDIR else {
        throw CreationError(path: target, errorNumber: EISDIR)
      }
      guard [S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT) else {
        throw CreationError(noFile: target)
      }
    }
    // Never truncated in place, since cutting a big file stalls: an old one is put aside.
    let aside = TemporaryName.beside(target, Self.aside)
    // What appears under the name from here on is not replaced, but refused below.
    if overwrites {
      if rename(path, aside.systemPath) == 0 {
        replacedPath = aside
      } else if errno != ENOENT {
        throw CreationError(path: target, errorNumber: errno)
      }
    }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else {
      let errorNumber = errno
      if let replacedPath { rename(replacedPath.systemPath, path) }
      throw CreationError(path: target, errorNumber: errorNumber)
    }
    if replacedPath != nil, status.st_mode & S_IFMT == S_IFREG {
      fchmod(descriptor, status.st_mode & 0o777)
    }
    // Where not even this finds room, the first picture will say so.
    MovieHead.placeholder.withUnsafeBytes { _ = write(descriptor, $0.baseAddress, $0.count) }
    fdatasync(descriptor)
    close(descriptor)
    writtenPath = target
  }

  deinit {
    if let replacedPath { unlink(replacedPath.systemPath) }
  }

  /// Removes what was written, and gives what it was to replace its name back; for a recording
  /// that holds nothing.
  package consuming func discard() {
    unlink(writtenPath.systemPath)
    if let aside = replacedPath.take() { rename(aside.systemPath, writtenPath.systemPath) }
  }

  /// Removes the file that this one replaces: from now on there is something in its place.
  package mutating func dropReplaced() {
    if let aside = replacedPath.take() { unlink(aside.systemPath) }
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
      if TemporaryName.process(in: found, aside, of: name) != nil { return folder + found }
    }
    return nil
  }

  /// The mark of a file that is put aside.
  private static let aside = "old"
}
