// SPDX-License-Identifier: Apache-2.0

import CLinuxSystem
import Glibc
package import OvercrankMediaCore

/// Appends bytes of memory and of other files to a file.
///
/// Bytes of other files are copied inside the kernel where possible: ranges that are contiguous in both
/// files in one call, whole blocks by sharing them. Small pieces of memory are written together.
package struct RangeCopier: ~Copyable {
  /// A contiguous range of a source's bytes that is still to be copied.
  private struct Run {
    let source: Int
    var start: Int64
    var target: Int64
    var count: Int64
  }

  /// The least number of bytes in contiguous samples for which file system blocks are shared.
  ///
  /// Sharing requires a gap before the first block. For fewer bytes, these gaps would be too large a part
  /// of the file.
  package static let shareableRunBytes: Int64 = 1 << 16
  /// The size in bytes from which a pending range is copied without waiting for its end.
  ///
  /// An export can then be cancelled during a long range.
  private static let maximumPending: Int64 = 64 << 20
  private static let bufferBytes = 1 << 16

  private let file: RandomAccessFile
  private let sources: [OpenFile]
  /// The size in bytes of the file system blocks that the file can share with each source.
  ///
  /// Nil for a source with which it cannot share blocks.
  private let blockBytes: [Int64?]
  private var run: Run?
  /// Bytes that are still to be written, before ``byteCount``.
  private var buffer: [UInt8] = []
  /// The number of bytes appended so far, including gaps.
  package private(set) var byteCount: Int64 = 0

  /// Creates a copier to an empty file.
  package init(to open: OpenFile, from sources: [OpenFile]) {
    let file = RandomAccessFile(open)
    blockBytes = sources.map { file.sharedBlockBytes(with: $0) }
    self.file = file
    self.sources = sources
  }

  package mutating func append(_ bytes: [UInt8]) throws(CallFailure) {
    try bytes.span.withUnsafeBytes { (bytes) throws(CallFailure) in try append(bytes) }
  }

  package mutating func append(_ bytes: UnsafeRawBufferPointer) throws(CallFailure) {
    try copyRun()
    let isLarge = bytes.count >= Self.bufferBytes / 2
    if isLarge || buffer.count + bytes.count > Self.bufferBytes { try writeBuffer() }
    if !isLarge {
      if buffer.capacity < Self.bufferBytes { buffer.reserveCapacity(Self.bufferBytes) }
      buffer.append(contentsOf: bytes)
    } else {
      try file.write(bytes, at: byteCount)
    }
    byteCount += Int64(bytes.count)
  }

  private mutating func writeBuffer() throws(CallFailure) {
    guard !buffer.isEmpty else { return }
    try file.write(buffer, at: byteCount - Int64(buffer.count))
    buffer.removeAll(keepingCapacity: true)
  }

  /// Leaves a gap before a range of a source, if its blocks can then be shared.
  ///
  /// `runBytes` returns the size of the range, at least up to ``shareableRunBytes``.
  package mutating func align(
    _ source: Int, _ start: Int64, runBytes: () -> Int64
  ) throws(CallFailure) {
    guard let block = blockBytes[source], !isNext(source, start),
      runBytes() >= Self.shareableRunBytes
    else { return }
    let gap = (start % block - byteCount % block + block) % block
    if gap > 0 { try skip(Int(gap)) }
  }

  /// Leaves a gap of `count` bytes, which read as zeros.
  package mutating func skip(_ count: Int) throws(CallFailure) {
    try flush()
    byteCount += Int64(count)
  }

  private func isNext(_ source: Int, _ start: Int64) -> Bool {
    run.map { $0.source == source && $0.start + $0.count == start } ?? false
  }

  package mutating func copy(
    _ count: Int64, from source: Int, at start: Int64
  ) throws(CallFailure) {
    if isNext(source, start) {
      run?.count += count
    } else {
      try flush()
      run = Run(source: source, start: start, target: byteCount, count: count)
    }
    byteCount += count
    guard let run, run.count >= Self.maximumPending else { return }
    // Only whole blocks can be shared, so the range is divided at the start of a block in the source.
    let block = blockBytes[run.source] ?? 1
    try copyRun(upTo: run.count - (run.start + run.count) % block)
  }

  /// Copies the pending range of source bytes, or only the first `limit` bytes of this range.
  private mutating func copyRun(upTo limit: Int64? = nil) throws(CallFailure) {
    guard let run else { return }
    let (source, count) = (sources[run.source], limit ?? run.count)
    let copied = try file.copy(
      count, from: source, at: run.start, to: run.target, blockBytes: blockBytes[run.source])
    guard copied == count else { throw CallFailure("read all packets of", source.path, EIO) }
    self.run =
      count == run.count
      ? nil
      : Run(
        source: run.source, start: run.start + count, target: run.target + count,
        count: run.count - count)
  }

  /// Writes all bytes that are still pending.
  package mutating func flush() throws(CallFailure) {
    try copyRun()
    try writeBuffer()
  }

  /// Reports errors that the file system has not reported yet.
  package mutating func close() throws(CallFailure) {
    // Some file systems, such as NFS, report a full disk only when a file descriptor is closed.
    let copy = dup(file.file.descriptor)
    guard copy < 0 || Glibc.close(copy) == 0 || errno == EINTR else {
      throw CallFailure("close", file.path, errno)
    }
  }
}

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
  /// - Throws: `CallFailure` with the operation "read" for the source, and "write to" for this file.
  ///   A part of the bytes may have been written.
  package func copy(
    _ count: Int64, from source: OpenFile, at start: Int64, to target: Int64, blockBytes: Int64?
  ) throws(CallFailure) -> Int64 {
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
  ) throws(CallFailure) -> Int64 {
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
  ) throws(CallFailure) -> Int64 {
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
        throw CallFailure("read", source.path, errno)
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
