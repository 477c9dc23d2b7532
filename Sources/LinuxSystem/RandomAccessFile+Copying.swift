// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc

extension RandomAccessFile {
  /// Copies bytes from another file to an offset in this file, inside the kernel where possible.
  ///
  /// - Parameters:
  ///   - count: The number of bytes.
  ///   - source: The file to read.
  ///   - start: The offset in the source.
  ///   - target: The offset in this file.
  ///   - blockBytes: The result of ``sharedBlockBytes(with:)``. Whole blocks are then shared instead
  ///     of copied if both offsets are at the same distance from a block's start.
  /// - Returns: The number of copied bytes. It is less than `count` only if the source ends.
  /// - Throws: `SystemError` with the operation "read" for the source, and "write to" for this file.
  ///   A part of the bytes may have been written.
  package func copy(
    _ count: Int64, from source: OpenFile, at start: Int64, to target: Int64, blockBytes: Int64?
  ) throws(SystemError) -> Int64 {
    var parts = [count]
    if let blockBytes, start % blockBytes == target % blockBytes {
      // The kernel shares blocks only if a request starts at the start of a block, so the bytes
      // before it are copied first.
      let head = min(count, (blockBytes - start % blockBytes) % blockBytes)
      let middle = (count - head) / blockBytes * blockBytes
      parts = [head, middle, count - head - middle]
    }
    var copied: Int64 = 0
    for part in parts where part > 0 {
      let done = try copyPart(part, from: source, at: start + copied, to: target + copied)
      copied += done
      if done < part { break }
    }
    return copied
  }

  private func copyPart(
    _ count: Int64, from source: OpenFile, at start: Int64, to target: Int64
  ) throws(SystemError) -> Int64 {
    var copied: Int64 = 0
    while copied < count {
      let result = CLinuxSystem_copyRange(
        source.descriptor, start + copied, file.descriptor, target + copied, count - copied)
      if result > 0 {
        copied += result
      } else if result != -Int64(EINTR) {
        // The kernel cannot copy between all file systems. Reading and writing also shows which of
        // the two files an error belongs to, and whether the source has ended.
        return try copied
          + copyInMemory(
            count - copied, from: source, at: start + copied, to: target + copied)
      }
    }
    return copied
  }

  private func copyInMemory(
    _ count: Int64, from source: OpenFile, at start: Int64, to target: Int64
  ) throws(SystemError) -> Int64 {
    let size = Int(min(count, 1 << 20))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4_096)
    defer { buffer.deallocate() }
    var copied: Int64 = 0
    while copied < count {
      let wanted = min(size, Int(clamping: count - copied))
      let read = pread(source.descriptor, buffer.baseAddress, wanted, off_t(start + copied))
      guard read != 0 else { break }
      guard read > 0 else {
        if errno == EINTR { continue }
        throw SystemError("read", source.path, errno)
      }
      try write(UnsafeRawBufferPointer(rebasing: buffer[..<read]), at: target + copied)
      copied += Int64(read)
    }
    return copied
  }

  /// The size of the blocks that this file can share with another file (reflink).
  ///
  /// This file must be empty. The file is empty again afterwards.
  ///
  /// - Returns: The block size in bytes. Nil if the files are on different file systems, or if
  ///   their file system cannot share blocks.
  package func sharedBlockBytes(with source: OpenFile) -> Int64? {
    var status = stat()
    guard fstat(file.descriptor, &status) == 0, status.st_size == 0 else { return nil }
    let size = Int64(status.st_blksize)
    guard (512...65_536).contains(size), size & (size - 1) == 0,
      CLinuxSystem_share(source.descriptor, file.descriptor, size) == 0
    else { return nil }
    truncate(to: 0)
    return size
  }
}
