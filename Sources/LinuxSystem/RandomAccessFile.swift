// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc
import SystemPackage

/// An open file for reads and writes at given offsets.
package struct RandomAccessFile: ~Copyable {
  /// The open file; other owners may share it.
  package let file: OpenFile
  package var path: String { file.path }
  private var descriptor: Int32 { file.descriptor }

  /// Opens an existing file.
  ///
  /// - Throws: `SystemError` for "open".
  package init(opening path: String, forWriting: Bool = true) throws(SystemError) {
    let opened = open(path.systemPath, (forWriting ? O_RDWR : O_RDONLY) | O_CLOEXEC)
    guard opened >= 0 else { throw SystemError("open", path, errno) }
    file = OpenFile(adopting: opened, path: path)
  }

  /// Uses a file that is already open.
  package init(_ file: OpenFile) { self.file = file }

  /// The file's present size in bytes; 0 where fstat(2) fails.
  package func count() -> Int64 {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
  }

  /// Reads up to `count` bytes at an offset.
  ///
  /// Fewer at the end of the file or after a read error.
  package func read(_ count: Int, at start: Int64) -> [UInt8] {
    guard count > 0, start >= 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
      read = max(0, pread(descriptor, buffer.baseAddress, count, off_t(start)))
    }
  }

  /// Writes all bytes at an offset.
  ///
  /// - Throws: `SystemError` for "write to"; a part of the bytes may have been written.
  package func write(_ bytes: UnsafeRawBufferPointer, at start: Int64) throws(SystemError) {
    if let reason = FileDescriptor(rawValue: descriptor).writeFully(bytes, at: start) {
      throw SystemError("write to", path, reason.rawValue)
    }
  }

  /// Writes all bytes at an offset.
  ///
  /// - Throws: `SystemError` for "write to"; a part of the bytes may have been written.
  package func write(_ bytes: [UInt8], at start: Int64) throws(SystemError) {
    let result = bytes.withUnsafeBytes { buffer -> Result<Void, SystemError> in
      Result { () throws(SystemError) in try write(buffer, at: start) }
    }
    try result.get()
  }

  /// Writes the bytes beyond the first page before the first page itself.
  ///
  /// A kill interrupts write(2) only at page boundaries. The first page holds the box header, so
  /// readers keep skipping the old box until its replacement is complete.
  ///
  /// - Throws: `SystemError` for "write to"; a part of the bytes may have been written.
  package func writeFrontLast(_ bytes: [UInt8], at start: Int64) throws(SystemError) {
    let front = min(bytes.count, Int(Self.pageBytes - start % Self.pageBytes))
    let result = bytes.withUnsafeBytes { buffer -> Result<Void, SystemError> in
      Result { () throws(SystemError) in
        let rest = UnsafeRawBufferPointer(rebasing: buffer[front...])
        try write(rest, at: start + Int64(front))
        try write(UnsafeRawBufferPointer(rebasing: buffer[..<front]), at: start)
      }
    }
    try result.get()
  }

  private static let pageBytes: Int64 = 4_096

  /// Truncates the file and releases space reserved beyond its end.
  ///
  /// A failure is ignored.
  package func truncate(to count: Int64) { _ = ftruncate(descriptor, off_t(count)) }

  /// Waits until all written data is on the disk; see fdatasync(2).
  ///
  /// - Throws: `SystemError` for "write to" when the disk failed; written data may be lost.
  package func sync() throws(SystemError) {
    while fdatasync(descriptor) != 0 {
      // These errors mean that the file is not on a disk, such as a pipe, so there is nothing to
      // sync.
      if errno == EINVAL || errno == EROFS || errno == ENOSYS { return }
      guard errno == EINTR else { throw SystemError("write to", path, errno) }
    }
  }

  /// Waits until the file's directory entry is on the disk.
  ///
  /// Failures are ignored, since some file systems cannot sync directories.
  package func syncName() {
    let opened = open(
      path.parentDirectory.systemPath, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard opened >= 0 else { return }
    fsync(opened)
    close(opened)
  }

  /// Reserves disk space, also beyond the end of the file.
  ///
  /// False where free space is short or the file system cannot reserve.
  package func reserve(_ count: Int64, from start: Int64) -> Bool {
    var space = statvfs()
    guard fstatvfs(descriptor, &space) == 0,
      Int64(clamping: space.f_bavail).multipliedReportingOverflow(by: Int64(space.f_frsize))
        .partialValue / 16 > count
    else { return false }
    return CLinuxSystem_reserve(descriptor, start, count) == 0
  }

  /// Whether the file is on a memory file system (tmpfs), where reserved space uses memory.
  package var isInMemory: Bool { CLinuxSystem_isInMemory(descriptor) != 0 }
}
