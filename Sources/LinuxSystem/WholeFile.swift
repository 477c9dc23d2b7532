// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file that has its name only when it is finished.
///
/// It is written beside its target under a temporary name and renamed at the end; what was not
/// finished is removed. A file that it replaces stays until then, and gives it its mode. Behind a
/// symbolic link the file that the link leads to is replaced.
package struct WholeFile: ~Copyable {
  /// The path to write to, as it was given.
  package let target: String
  /// The name that is being written.
  package let writtenPath: String
  /// Where the finished file goes.
  private let location: String
  private let overwrites: Bool
  private let replaces: Bool
  private var isFinished = false

  /// Creates the file, with nothing in it.
  ///
  /// - Parameters:
  ///   - target: The path to write to.
  ///   - overwrites: Whether a file of this name may be replaced.
  /// - Throws: `FileCreationError` when the name is taken, the file of this name is being recorded,
  ///   the folder does not exist or may not be written to.
  package init(creating target: String, overwrites: Bool) throws(FileCreationError) {
    var (location, status) = (target, stat())
    var replaces = false
    if lstat(target.systemPath, &status) == 0 {
      guard overwrites else { throw FileCreationError(path: target, errorNumber: EEXIST) }
      if status.st_mode & S_IFMT == S_IFLNK, let real = Self.realPath(target),
        stat(real.systemPath, &status) == 0
      {
        location = real
      }
      let kind = status.st_mode & S_IFMT
      guard kind != S_IFDIR else { throw FileCreationError(path: target, errorNumber: EISDIR) }
      // A link that leads nowhere is replaced itself.
      guard kind == S_IFREG || kind == S_IFLNK else {
        throw FileCreationError(noFile: target)
      }
      if FileLock.isHeld(on: location) { throw FileCreationError(path: target, errorNumber: EBUSY) }
      replaces = kind == S_IFREG
    }
    let created = try Self.create(location, for: target)
    if replaces { fchmod(created.descriptor, status.st_mode & 0o777) }
    close(created.descriptor)
    self.target = target
    self.location = location
    self.overwrites = overwrites
    self.replaces = replaces
    writtenPath = created.path
  }

  private static func create(
    _ location: String, for target: String
  ) throws(FileCreationError) -> (descriptor: Int32, path: String) {
    do throws(FileCreationError) {
      return try TemporaryName.create(beside: location, TemporaryName.part)
    } catch {
      throw FileCreationError(path: target, errorNumber: error.errorNumber)
    }
  }

  deinit {
    if !isFinished { unlink(writtenPath.systemPath) }  // Nobody is left to tell.
  }

  /// Gives the finished file its name.
  ///
  /// - Throws: `FileCreationError` when the name was taken meanwhile, or the system refuses.
  package mutating func finish() throws(FileCreationError) {
    guard !isFinished else { return }
    let failure = overwrites ? try replace() : FileName.claim(location, for: writtenPath)
    guard failure == 0 else { throw error(failure) }
    isFinished = true
  }

  /// Replaces the file that has the name now, whether it is the same as in the beginning or not;
  /// 0, or the errno.
  private func replace() throws(FileCreationError) -> Int32 {
    // What is replaced is gone for good: what replaces it is on the disk before.
    if replaces {
      do throws(SystemError) {
        try RandomAccessFile(opening: writtenPath, forWriting: false).sync()
      } catch { return error.errorNumber }
    }
    for _ in 0..<Self.attempts {
      // A recording that begins under the name meanwhile is refused, or has locked its own file.
      guard let old = try NamedFile.locking(location) else {
        let failure = FileName.claim(location, for: writtenPath)
        if failure == EEXIST { continue }
        return failure
      }
      return withExtendedLifetime(old) {
        rename(writtenPath.systemPath, location.systemPath) == 0 ? 0 : errno
      }
    }
    return EBUSY
  }

  private static let attempts = 100

  private func error(_ number: Int32) -> FileCreationError {
    FileCreationError(path: location, errorNumber: number)
  }

  private static func realPath(_ path: String) -> String? {
    guard let real = realpath(path.systemPath, nil) else { return nil }
    defer { free(real) }
    return String(systemPath: real)
  }
}

extension WholeFile {
  /// Writes a small file whole, or into what is no ordinary file: a pipe, a terminal.
  ///
  /// - Throws: `FileCreationError`; what it was to replace is then still there.
  package static func write(
    _ bytes: [UInt8], to target: String, overwrites: Bool
  ) throws(FileCreationError) {
    do throws(FileCreationError) {
      var file = try WholeFile(creating: target, overwrites: overwrites)
      try append(bytes, to: file.writtenPath, named: target)
      try file.finish()
    } catch {
      guard error.isNoFile else { throw error }
      try append(bytes, to: target, named: target)
    }
  }

  private static func append(
    _ bytes: [UInt8], to path: String, named target: String
  ) throws(FileCreationError) {
    let descriptor = open(path.systemPath, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileCreationError(path: target, errorNumber: errno) }
    var failure = writeAll(bytes, to: descriptor)
    // Some file systems tell of a full disk only here.
    if close(descriptor) != 0, failure == nil, errno != EINTR { failure = errno }
    if let failure { throw FileCreationError(path: target, errorNumber: failure, isWriting: true) }
  }

  /// Writes all bytes, however often the system must be asked; the errno where it refuses.
  package static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
    bytes.withUnsafeBytes { buffer in
      var location = 0
      while location < buffer.count, let start = buffer.baseAddress {
        let count = Glibc.write(descriptor, start + location, buffer.count - location)
        if count < 0, errno != EINTR { return errno }
        location += max(0, count)
      }
      return nil
    }
  }
}
