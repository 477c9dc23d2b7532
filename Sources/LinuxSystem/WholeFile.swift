// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc
package import OvercrankMediaCore
import SystemPackage

/// A file that receives its name only once it is complete.
///
/// Data is written to a temporary name beside the target, and the file is renamed at the end. An
/// unfinished file is removed; one that a killed process left is removed by the next process that
/// writes the target. An existing file stays until the rename replaces it, and the new file gets
/// the permissions of the old one. If the target is a symbolic link, the file that it points to is
/// replaced.
package struct WholeFile: ~Copyable {
  /// The target path as the caller gave it.
  package let target: String
  /// The temporary path that data is written to.
  package let writtenPath: String
  /// The path of the finished file, with symbolic links resolved.
  private let location: String
  private let overwrites: Bool
  private let replaces: Bool
  private var isFinished = false
  /// Holds the lock of the temporary file; nil after the end.
  private var lock: OpenFile?

  /// Creates the empty temporary file.
  ///
  /// - Parameters:
  ///   - target: The target path.
  ///   - overwrites: Whether an existing file may be replaced.
  /// - Throws: `CallFailure` if the name is taken, the target is being recorded, or the
  ///   directory is missing or not writable.
  package init(creating target: String, overwrites: Bool) throws(CallFailure) {
    var (location, status) = (target, stat())
    var replaces = false
    if lstat(target.systemPath, &status) == 0 {
      guard overwrites else { throw CallFailure.creating(target, EEXIST) }
      if status.st_mode & S_IFMT == S_IFLNK, let real = SystemFiles.resolved(target),
        stat(real.systemPath, &status) == 0
      {
        location = real
      }
      let kind = status.st_mode & S_IFMT
      guard kind != S_IFDIR else { throw CallFailure.creating(target, EISDIR) }
      // If a symbolic link leads to no file, the new file replaces the link itself.
      guard kind == S_IFREG || kind == S_IFLNK else {
        throw CallFailure.notRegular(target)
      }
      if FileLock.isHeld(on: location) { throw CallFailure.creating(target, EBUSY) }
      replaces = kind == S_IFREG
    }
    TemporaryName.removeEarlier(beside: location)
    let created = try Self.create(location, for: target)
    if replaces { fchmod(created.file.descriptor, status.st_mode & 0o777) }
    lock = created.file
    (self.target, self.location, self.overwrites) = (target, location, overwrites)
    self.replaces = replaces
    writtenPath = created.path
    UnfinishedFiles.add(writtenPath)
  }

  private static func create(
    _ location: String, for target: String
  ) throws(CallFailure) -> (file: OpenFile, path: String) {
    do throws(CallFailure) {
      return try TemporaryName.createLocked(beside: location, TemporaryName.part)
    } catch {
      throw CallFailure.creating(target, error.number)
    }
  }

  deinit {
    // A failed removal is ignored, because no caller is left to report the error to.
    if !isFinished { UnfinishedFiles.remove(writtenPath) }
  }

  /// Renames the finished file to its target.
  ///
  /// - Throws: `CallFailure` if the name was taken meanwhile, or the rename fails.
  package mutating func finish() throws(CallFailure) {
    guard !isFinished else { return }
    let failure = overwrites ? try replace() : claim()
    guard failure == 0 else { throw error(failure) }
    isFinished = true
    // A child process that another thread is starting shares the lock until exec(2). Closing the
    // file would therefore not release the lock.
    if let lock { FileLock.release(lock.descriptor) }
    lock = nil
  }

  /// Gives the file its target's name, even if another file has received this name since this file
  /// was created.
  ///
  /// - Returns: 0 or the errno.
  private func replace() throws(CallFailure) -> Int32 {
    // After the rename, the old file is lost, so the new data must be on the disk before.
    if replaces {
      do throws(CallFailure) {
        try RandomAccessFile(opening: writtenPath, forWriting: false).sync()
      } catch { return error.number }
    }
    for _ in 0..<Self.attempts {
      // A recording may start under this name at the same time. Either the recording finds this
      // lock and is refused, or it already holds the lock and this call is refused.
      guard let old = try NamedFile.locking(location) else {
        let failure = claim()
        if failure == EEXIST { continue }
        return failure
      }
      return withExtendedLifetime(old) {
        UnfinishedFiles.finish(writtenPath) {
          rename(writtenPath.systemPath, location.systemPath) == 0 ? 0 : errno
        }
      }
    }
    return EBUSY
  }

  /// Gives the file its target's name if that name is free, and returns 0 or the errno.
  private borrowing func claim() -> Int32 {
    UnfinishedFiles.finish(writtenPath) { FileName.claim(location, for: writtenPath) }
  }

  private static let attempts = 100

  private func error(_ number: Int32) -> CallFailure {
    CallFailure.creating(location, number)
  }

  /// Writes a small file atomically, or writes directly to a pipe or terminal.
  ///
  /// - Parameters:
  ///   - bytes: The contents.
  ///   - target: The target path.
  ///   - overwrites: Whether an existing file may be replaced.
  ///   - isCancelled: Polled while a named pipe has no reader, or is full.
  /// - Throws: `CallFailure`, with `ECANCELED` after a cancellation. An existing file is then
  ///   unchanged.
  package static func write(
    _ bytes: [UInt8], to target: String, overwrites: Bool,
    isCancelled: () -> Bool = { false }
  ) throws(CallFailure) {
    do throws(CallFailure) {
      var file = try WholeFile(creating: target, overwrites: overwrites)
      try append(bytes, to: file.writtenPath, named: target)
      try file.finish()
    } catch {
      guard error.kind == .notRegularFile else { throw error }
      if SystemFiles.isPipe(target) { return try send(bytes, to: target, isCancelled) }
      try append(bytes, to: target, named: target)
    }
  }

  /// The time between polls for a cancellation, in milliseconds.
  private static let pollInterval: Int32 = 50

  /// Waits until a reader has opened a named pipe, then writes bytes to the pipe.
  private static func send(
    _ bytes: [UInt8], to pipe: String, _ isCancelled: () -> Bool
  ) throws(CallFailure) {
    let cancelled = CallFailure.writing(pipe, ECANCELED)
    var descriptor: Int32
    while true {
      descriptor = open(pipe.systemPath, O_WRONLY | O_CLOEXEC | O_NONBLOCK)
      if descriptor >= 0 { break }
      // ENXIO: the pipe has no reader.
      guard errno == ENXIO else { throw CallFailure.creating(pipe, errno) }
      guard !isCancelled() else { throw cancelled }
      poll(nil, 0, pollInterval)
    }
    defer { close(descriptor) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      let reason = errno
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if reason == EAGAIN {
        var waited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        if poll(&waited, 1, pollInterval) == 0, isCancelled() { throw cancelled }
      } else if reason != EINTR {
        throw CallFailure.writing(pipe, reason)
      }
    }
  }

  private static func append(
    _ bytes: [UInt8], to path: String, named target: String
  ) throws(CallFailure) {
    let descriptor = open(path.systemPath, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw CallFailure.creating(target, errno) }
    var failure = FileDescriptor(rawValue: descriptor).writeFully(bytes)?.rawValue
    // Some file systems, such as NFS, report a full disk only at close(2).
    if close(descriptor) != 0, failure == nil, errno != EINTR { failure = errno }
    if let failure { throw CallFailure.writing(target, failure) }
  }
}
