// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore

/// Writes the output of a muxer to a file.
///
/// Packets of source files are copied by the kernel, from file to file.
///
/// Packets that are contiguous in both files are copied in one call.
final class CopyingSink: MuxerSink {
  /// A contiguous range of a source's bytes that is still to be copied.
  private struct Run {
    let source: Int
    var start: Int64
    var target: Int64
    var count: Int64
  }

  private let file: RandomAccessFile
  private let sources: [StoredMedia]
  /// The size in bytes of the file system blocks that the file can share with each source.
  ///
  /// Nil for a source with which it cannot share blocks.
  private let blockBytes: [Int64?]
  private var run: Run?
  private var end: Int64 = 0
  /// The number of bytes that the muxer wrote from source files.
  private(set) var copiedBytes: Int64 = 0
  /// The first error that occurred.
  private(set) var failure: LibAVError?

  /// The size in bytes from which a pending range is copied without waiting for its end.
  ///
  /// An export can then be cancelled during a long range.
  private static let maximumPending: Int64 = 64 << 20

  /// Opens an existing empty file.
  ///
  /// - Throws: `SystemError` with the operation "open".
  init(_ path: String, _ sources: [StoredMedia]) throws(SystemError) {
    let file = try RandomAccessFile(opening: path)
    blockBytes = sources.map { file.sharedBlockBytes(with: $0.file) }
    self.file = file
    self.sources = sources
  }

  override var byteCount: Int64 { end }

  /// The size in bytes of the file system blocks that the file can share with a source.
  ///
  /// Nil if it cannot share blocks.
  func sharedBlockBytes(_ source: StoredMedia) -> Int64? {
    sources.firstIndex { $0 === source }.flatMap { blockBytes[$0] }
  }

  override func receive(_ bytes: UnsafeRawBufferPointer) -> Int32 {
    do throws(LibAVError) {
      if let failure { throw failure }
      for (number, source) in sources.enumerated() {
        if let start = source.position(of: bytes.baseAddress) {
          try add(Run(source: number, start: start, target: position, count: Int64(bytes.count)))
          end = max(end, position + Int64(bytes.count))
          copiedBytes += Int64(bytes.count)
          return 0
        }
      }
      try copyRun()
      do throws(SystemError) { try file.write(bytes, at: position) } catch {
        throw LibAVError(error)
      }
      end = max(end, position + Int64(bytes.count))
      return 0
    } catch {
      failure = error
      return error.code < 0 ? error.code : CFFmpeg_EINVAL
    }
  }

  private func add(_ next: Run) throws(LibAVError) {
    if let run, run.source == next.source, run.start + run.count == next.start,
      run.target + run.count == next.target
    {
      self.run?.count += next.count
    } else {
      try copyRun()
      run = next
    }
    guard let run, run.count >= Self.maximumPending else { return }
    // Only whole blocks can be shared, so the range is divided at the start of a block in the
    // source.
    let block = blockBytes[run.source] ?? 1
    try copyRun(upTo: run.count - (run.start + run.count) % block)
  }

  /// Copies the pending range of source bytes, or only the first `limit` bytes of this range.
  private func copyRun(upTo limit: Int64? = nil) throws(LibAVError) {
    guard let run else { return }
    let (source, count) = (sources[run.source].file, limit ?? run.count)
    let copied = try LibAVError.converting { () throws(SystemError) in
      try file.copy(
        count, from: source, at: run.start, to: run.target, blockBytes: blockBytes[run.source])
    }
    guard copied == count else {
      throw LibAVError("read all packets of", source.path, code: CFFmpeg_INVALIDDATA)
    }
    self.run =
      count == run.count
      ? nil
      : Run(
        source: run.source, start: run.start + count, target: run.target + count,
        count: run.count - count)
  }

  /// Copies the pending range, and reports errors that the file system has not reported yet.
  func finish() throws(LibAVError) {
    if let failure { throw failure }
    try copyRun()
    // Some file systems, such as NFS, report a full disk only when a file descriptor is closed.
    let copy = dup(file.file.descriptor)
    guard copy < 0 || close(copy) == 0 || errno == EINTR else {
      throw LibAVError("close", file.path, code: -errno)
    }
  }
}
