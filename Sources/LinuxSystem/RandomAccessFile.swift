// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc

/// An open file, read and written at offsets.
package struct RandomAccessFile: ~Copyable {
  /// The file, which others may have open, too.
  package let file: OpenFile
  package var path: String { file.path }
  private var descriptor: Int32 { file.descriptor }

  /// Opens a file that exists.
  ///
  /// - Throws: `SystemError` for "open".
  package init(opening path: String, forWriting: Bool = true) throws(SystemError) {
    let opened = open(path.systemPath, (forWriting ? O_RDWR : O_RDONLY) | O_CLOEXEC)
    guard opened >= 0 else { throw SystemError("open", path, errno) }
    file = OpenFile(adopting: opened, path: path)
  }

  /// Works on a file that is open.
  package init(_ file: OpenFile) { self.file = file }

  /// Bytes of the file now.
  package func count() -> Int64 {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
  }

  /// Up to so many bytes from a place on; fewer where the file ends or cannot be read.
  package func read(_ count: Int, at start: Int64) -> [UInt8] {
    guard count > 0, start >= 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
      read = max(0, pread(descriptor, buffer.baseAddress, count, off_t(start)))
    }
  }

  /// Writes all of the bytes at a place.
  ///
  /// - Throws: `SystemError` for "write to"; some of the bytes may then have been written.
  package func write(_ bytes: UnsafeRawBufferPointer, at start: Int64) throws(SystemError) {
    var rest = bytes
    var position = off_t(start)
    while !rest.isEmpty {
      let count = pwrite(descriptor, rest.baseAddress, rest.count, position)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw SystemError("write to", path, count < 0 ? errno : EIO) }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      position += off_t(count)
    }
  }

  /// Writes all of the bytes at a place.
  ///
  /// - Throws: `SystemError` for "write to"; some of the bytes may then have been written.
  package func write(_ bytes: [UInt8], at start: Int64) throws(SystemError) {
    let result = bytes.withUnsafeBytes { buffer -> Result<Void, SystemError> in
      Result { () throws(SystemError) in try write(buffer, at: start) }
    }
    try result.get()
  }

  /// Writes the bytes behind the first page before those in it.
  ///
  /// A kill ends a write(2) only between two pages. What begins with a box that readers skip, and
  /// is to become another one, is thus skipped until all of that one is there.
  ///
  /// - Throws: `SystemError` for "write to"; some of the bytes may then have been written.
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

  /// Cuts the file off behind so many bytes, and gives back what was reserved behind them; one
  /// that cannot be cut stays as it is.
  package func truncate(to count: Int64) { _ = ftruncate(descriptor, off_t(count)) }

  /// Waits until all that was written so far is on the disk.
  ///
  /// - Throws: `SystemError` for "write to": the disk failed, and some of it is lost.
  package func sync() throws(SystemError) {
    while fdatasync(descriptor) != 0 {
      // What cannot be told to write is no disk.
      if errno == EINVAL || errno == EROFS || errno == ENOSYS { return }
      guard errno == EINTR else { throw SystemError("write to", path, errno) }
    }
  }

  /// Waits until the file's name is on the disk; file systems that cannot tell are not asked again.
  package func syncName() {
    let folder = path.folderAndName.folder
    let opened = open(
      (folder.isEmpty ? "." : folder).systemPath, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard opened >= 0 else { return }
    fsync(opened)
    close(opened)
  }

  /// Reserves room on the disk, also behind the file's end; false where there is none to spare or
  /// the file system cannot.
  package func reserve(_ count: Int64, from start: Int64) -> Bool {
    var space = statvfs()
    guard fstatvfs(descriptor, &space) == 0,
      Int64(clamping: space.f_bavail).multipliedReportingOverflow(by: Int64(space.f_frsize))
        .partialValue / 16 > count
    else { return false }
    return CLinuxSystem_reserve(descriptor, start, count) == 0
  }

  /// Whether the file lies in memory, where room that is reserved is memory taken.
  package var isInMemory: Bool { CLinuxSystem_isInMemory(descriptor) != 0 }
}
