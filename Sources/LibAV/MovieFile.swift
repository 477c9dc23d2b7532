// SPDX-License-Identifier: Apache-2.0
import CFFmpeg
import Glibc

/// Where a movie is written: whole files appear under their name only when they are finished.
///
/// A growing file has its name from the start, and is a movie without tracks until it has its head,
/// because it is to be read while it grows. A whole
/// file is written beside its target under a temporary name and renamed at the end; what was
/// not finished is removed. Either way a file that is to be replaced stays until there is
/// something in its place.
package struct MovieFile: ~Copyable {
  /// The name the user gave.
  package let target: String
  /// The name that is being written.
  package let writtenPath: String
  private let overwrites: Bool
  private var isFinished = false
  /// Where the file that a growing one replaces lies until it does.
  private var replacedPath: String?

  /// Why a file cannot be created at a path.
  package struct CreationError: Error, Sendable {
    package let path: String
    /// The errno; `EEXIST` for a name that is taken, `ENOTSUP` for a device, pipe or socket.
    package let errorNumber: Int32
    /// Whether the name is taken by a file that may not be replaced.
    package var isNameTaken: Bool { errorNumber == EEXIST }
    /// Why, in the system's words.
    package var reason: String {
      isNoFile ? "it is no ordinary file" : String(cString: strerror(errorNumber))
    }
    fileprivate var isNoFile = false
  }

  /// Creates the file, with nothing in it.
  ///
  /// - Parameters:
  ///   - target: The path to write to.
  ///   - overwrites: Whether a file that exists may be replaced; it is, at the end, or by
  ///     ``dropReplaced()`` where the file grows.
  ///   - grows: Whether the file is to have its name from the start.
  /// - Throws: `CreationError` when the name is taken, the folder does not exist or may not be
  ///   written to.
  package init(
    creating target: String, overwrites: Bool, grows: Bool
  ) throws(CreationError) {
    var status = stat()
    if lstat(target, &status) == 0 {
      guard overwrites else { throw CreationError(path: target, errorNumber: EEXIST) }
      guard status.st_mode & S_IFMT != S_IFDIR else {
        throw CreationError(path: target, errorNumber: EISDIR)
      }
      guard [S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT) else {
        throw CreationError(path: target, errorNumber: ENOTSUP, isNoFile: true)
      }
    }
    // A name without its extension's meaning would choose another container, so it stays last.
    let (folder, name) = Self.split(target)
    let written = grows ? target : "\(folder).\(getpid()).part.\(name)"
    // Never truncated in place, since cutting a big file stalls: an old one is put aside, and
    // what an earlier process left under a temporary name is removed.
    let aside = "\(folder).\(getpid()).old.\(name)"
    // What appears under the name from here on is not replaced, but refused below.
    if grows, !overwrites {
      replacedPath = nil
    } else if (grows ? rename(written, aside) : unlink(written)) == 0 {
      replacedPath = grows ? aside : nil
    } else if Self.lastErrorNumber() != ENOENT {
      throw CreationError(path: target, errorNumber: Self.lastErrorNumber())
    }
    let descriptor = open(written, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else {
      let errorNumber = Self.lastErrorNumber()
      if let replacedPath { rename(replacedPath, target) }
      throw CreationError(path: target, errorNumber: errorNumber)
    }
    if grows {
      // Where not even this finds room, the first picture will say so.
      MovieHead.placeholder.withUnsafeBytes { _ = write(descriptor, $0.baseAddress, $0.count) }
      fdatasync(descriptor)
    }
    close(descriptor)
    self.target = target
    self.overwrites = overwrites
    writtenPath = written
    isFinished = grows
  }

  deinit {
    if !isFinished { unlink(writtenPath) }  // Nobody is left to tell.
    if let replacedPath { unlink(replacedPath) }
  }

  /// Removes what was written, whatever its name, and gives what it was to replace its name
  /// back; for a recording that holds nothing.
  package consuming func discard() {
    unlink(writtenPath)
    isFinished = true
    if let aside = replacedPath.take() { rename(aside, target) }
  }

  /// Removes the file that a growing one replaces: from now on there is something in its place.
  package mutating func dropReplaced() {
    if let aside = replacedPath.take() { unlink(aside) }
  }

  /// Gives the finished file its name.
  ///
  /// - Throws: `CreationError` when the name was taken meanwhile, or the system refuses.
  package mutating func finish() throws(CreationError) {
    guard !isFinished else { return }
    if overwrites {
      guard rename(writtenPath, target) == 0 else {
        throw CreationError(path: target, errorNumber: Self.lastErrorNumber())
      }
    } else if link(writtenPath, target) == 0 {
      // link(2) refuses a name that is taken; rename(2) would silently replace it.
      unlink(writtenPath)
    } else {
      let errorNumber = Self.lastErrorNumber()
      // Some file systems have no hard links at all.
      guard errorNumber == EPERM || errorNumber == EOPNOTSUPP,
        access(target, F_OK) != 0, rename(writtenPath, target) == 0
      else { throw CreationError(path: target, errorNumber: errorNumber) }
    }
    isFinished = true
  }

  /// Where the file lies that a growing one was to replace when its process was killed; nil where
  /// there is none.
  package static func replaced(by path: String) -> String? {
    let (folder, name) = split(path)
    guard let directory = opendir(folder.isEmpty ? "." : folder) else { return nil }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let found = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      let process = found.dropFirst().prefix { $0.isWholeNumber }
      if !process.isEmpty, found == ".\(process).old.\(name)" { return folder + found }
    }
    return nil
  }

  /// The path's folder with its slash, and its name.
  static func split(_ path: String) -> (folder: String, name: String) {
    guard let slash = path.lastIndex(of: "/") else { return ("", path) }
    return (String(path[...slash]), String(path[path.index(after: slash)...]))
  }

  private static func lastErrorNumber() -> Int32 { errno }
}
