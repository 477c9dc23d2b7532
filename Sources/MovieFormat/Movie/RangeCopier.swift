// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore

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
  var byteCount: Int64 { position }
  /// The end of what was appended.
  private var position: Int64 = 0

  /// Creates a copier to an empty file.
  init(to open: OpenFile, from sources: [OpenFile]) {
    let file = RandomAccessFile(open)
    blockBytes = sources.map { file.sharedBlockBytes(with: $0) }
    self.file = file
    self.sources = sources
  }

  mutating func append(_ bytes: [UInt8]) throws(CallFailure) {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(CallFailure) in try append(bytes) }
    }
    try result.get()
  }

  mutating func append(_ bytes: UnsafeRawBufferPointer) throws(CallFailure) {
    try copyRun()
    let isLarge = bytes.count >= Self.bufferBytes / 2
    if isLarge || buffer.count + bytes.count > Self.bufferBytes { try writeBuffer() }
    if !isLarge {
      if buffer.capacity < Self.bufferBytes { buffer.reserveCapacity(Self.bufferBytes) }
      buffer.append(contentsOf: bytes)
    } else {
      try file.write(bytes, at: position)
    }
    position += Int64(bytes.count)
  }

  private mutating func writeBuffer() throws(CallFailure) {
    guard !buffer.isEmpty else { return }
    try file.write(buffer, at: position - Int64(buffer.count))
    buffer.removeAll(keepingCapacity: true)
  }

  /// Leaves a gap before a range of a source, if its blocks can then be shared.
  ///
  /// `runBytes` returns the size of the range, at least up to ``shareableRunBytes``.
  mutating func align(_ source: Int, _ start: Int64, runBytes: () -> Int64) throws(CallFailure) {
    guard let block = blockBytes[source], !isNext(source, start),
      runBytes() >= Self.shareableRunBytes
    else { return }
    let gap = (start % block - position % block + block) % block
    if gap > 0 { try skip(Int(gap)) }
  }

  /// Leaves a gap of `count` bytes, which read as zeros.
  mutating func skip(_ count: Int) throws(CallFailure) {
    try flush()
    position += Int64(count)
  }

  private func isNext(_ source: Int, _ start: Int64) -> Bool {
    run.map { $0.source == source && $0.start + $0.count == start } ?? false
  }

  mutating func copy(_ count: Int64, from source: Int, at start: Int64) throws(CallFailure) {
    if isNext(source, start) {
      run?.count += count
    } else {
      try flush()
      run = Run(source: source, start: start, target: position, count: count)
    }
    position += count
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
  mutating func flush() throws(CallFailure) {
    try copyRun()
    try writeBuffer()
  }

  /// Reports errors that the file system has not reported yet.
  mutating func close() throws(CallFailure) {
    // Some file systems, such as NFS, report a full disk only when a file descriptor is closed.
    let copy = dup(file.file.descriptor)
    guard copy < 0 || Glibc.close(copy) == 0 || errno == EINTR else {
      throw CallFailure("close", file.path, errno)
    }
  }
}
