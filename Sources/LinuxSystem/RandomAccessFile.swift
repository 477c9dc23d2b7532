// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc
package import OvercrankMediaCore
import SystemPackage

/// An open file for reads and writes at given offsets.
package struct RandomAccessFile: ~Copyable {
  /// The open file, which other parts of the program may share.
  package let file: OpenFile
  package var path: String { file.path }
  private var descriptor: Int32 { file.descriptor }

  /// Opens an existing file.
  ///
  /// - Throws: `CallFailure` with the operation "open".
  package init(opening path: String, forWriting: Bool = true) throws(CallFailure) {
    let opened = open(path.systemPath, (forWriting ? O_RDWR : O_RDONLY) | O_CLOEXEC)
    guard opened >= 0 else { throw CallFailure("open", path, errno) }
    file = OpenFile(adopting: opened, path: path)
  }

  /// Uses a file that is already open.
  package init(_ file: OpenFile) { self.file = file }

  /// The file's current size in bytes; 0 if fstat(2) fails.
  package func count() -> Int64 {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
  }

  /// Reads up to `count` bytes at an offset.
  ///
  /// Returns fewer bytes at the end of the file or after a read error.
  package func read(_ count: Int, at start: Int64) -> [UInt8] {
    guard count > 0, start >= 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
      read = max(0, pread(descriptor, buffer.baseAddress, count, off_t(start)))
    }
  }

  /// Writes all bytes at an offset.
  ///
  /// - Throws: `CallFailure` with the operation "write to"; a part of the bytes may have been
  ///   written.
  package func write(_ bytes: UnsafeRawBufferPointer, at start: Int64) throws(CallFailure) {
    if let reason = FileDescriptor(rawValue: descriptor).writeFully(bytes, at: start) {
      throw CallFailure("write to", path, reason.rawValue)
    }
  }

  /// Writes all bytes at an offset.
  ///
  /// - Throws: `CallFailure` with the operation "write to"; a part of the bytes may have been
  ///   written.
  package func write(_ bytes: [UInt8], at start: Int64) throws(CallFailure) {
    try bytes.span.withUnsafeBytes { (buffer) throws(CallFailure) in
      try write(buffer, at: start)
    }
  }

  /// Writes a box of a movie file over an older box: first the bytes after the first page, then the
  /// first page.
  ///
  /// If the process is killed, write(2) stops only between pages. The first page contains the box
  /// header, so readers still skip the old box until the new one is complete.
  ///
  /// - Throws: `CallFailure` with the operation "write to". Some of the bytes may have been
  ///   written.
  package func writeFrontLast(_ bytes: [UInt8], at start: Int64) throws(CallFailure) {
    let front = min(bytes.count, Int(Self.pageBytes - start % Self.pageBytes))
    try bytes.span.withUnsafeBytes { (buffer) throws(CallFailure) in
      let rest = UnsafeRawBufferPointer(rebasing: buffer[front...])
      try write(rest, at: start + Int64(front))
      try write(UnsafeRawBufferPointer(rebasing: buffer[..<front]), at: start)
    }
  }

  /// The size of a page of the page cache, in bytes.
  package static let pageBytes: Int64 = 4_096

  /// Truncates the file, and releases space that was reserved beyond the new end.
  ///
  /// A failure is ignored.
  package func truncate(to count: Int64) { _ = ftruncate(descriptor, off_t(count)) }

  /// Waits until all written data is on the disk; see fdatasync(2).
  ///
  /// - Throws: `CallFailure` with the operation "write to" if the disk failed. Written data may
  ///   then be lost.
  package func sync() throws(CallFailure) {
    while fdatasync(descriptor) != 0 {
      // These errors mean that the file cannot be synced because it is not on a disk. For example,
      // it is a pipe.
      if errno == EINVAL || errno == EROFS || errno == ENOSYS { return }
      guard errno == EINTR else { throw CallFailure("write to", path, errno) }
    }
  }

  /// Waits until the directory entry with the file's name is on the disk.
  ///
  /// Some file systems cannot sync directories, so failures are ignored.
  package func syncName() {
    let opened = open(
      path.parentDirectory.systemPath, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard opened >= 0 else { return }
    fsync(opened)
    close(opened)
  }

  /// Reserves disk space, also beyond the end of the file.
  ///
  /// Returns true on success, and false if too little space is free or the file system cannot
  /// reserve space.
  package func reserve(_ count: Int64, from start: Int64) -> Bool {
    var space = statvfs()
    guard fstatvfs(descriptor, &space) == 0,
      Int64(clamping: space.f_bavail).multipliedReportingOverflow(by: Int64(space.f_frsize))
        .partialValue / 16 > count
    else { return false }
    return CLinuxSystem_reserve(descriptor, start, count) == 0
  }

  /// Whether the file is on a file system in memory (tmpfs), where reserved space would use memory.
  package var isInMemory: Bool { CLinuxSystem_isInMemory(descriptor) != 0 }
}
