// SPDX-License-Identifier: Apache-2.0
import Glibc
import LibAV

/// An open movie file, read and written at places.
struct MovieBytes: ~Copyable {
  let path: String
  private let descriptor: Int32

  /// Opens a file that exists.
  ///
  /// - Throws: `LibAVError` for "open".
  init(opening path: String) throws(LibAVError) {
    let opened = open(path, O_RDWR | O_CLOEXEC)
    guard opened >= 0 else { throw LibAVError("open", path, code: -errno) }
    descriptor = opened
    self.path = path
  }

  deinit { close(descriptor) }

  /// Bytes of the file now.
  func count() -> Int64 { Int64(lseek(descriptor, 0, SEEK_END)) }

  /// Up to so many bytes from a place on; fewer where the file ends or cannot be read.
  func read(_ count: Int, at start: Int64) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
      read = max(0, pread(descriptor, buffer.baseAddress, count, off_t(start)))
    }
  }

  /// Writes all of the bytes at a place.
  ///
  /// - Throws: `LibAVError` for "write to"; some of the bytes may then have been written.
  func write(_ bytes: UnsafeRawBufferPointer, at start: Int64) throws(LibAVError) {
    var rest = bytes
    var place = off_t(start)
    while !rest.isEmpty {
      let count = pwrite(descriptor, rest.baseAddress, rest.count, place)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw LibAVError("write to", path, code: -(count < 0 ? errno : EIO)) }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      place += off_t(count)
    }
  }

  /// Writes all of the bytes at a place.
  ///
  /// - Throws: `LibAVError` for "write to"; some of the bytes may then have been written.
  func write(_ bytes: [UInt8], at start: Int64) throws(LibAVError) {
    let result = bytes.withUnsafeBytes { buffer -> Result<Void, LibAVError> in
      Result { () throws(LibAVError) in try write(buffer, at: start) }
    }
    try result.get()
  }

  /// Cuts the file off behind so many bytes; one that cannot be cut stays as it is.
  func truncate(to count: Int64) { _ = ftruncate(descriptor, off_t(count)) }
}
