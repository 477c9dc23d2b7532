// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
import OvercrankMediaCore

/// Receives the output of a muxer, but keeps only the bytes beyond the end of an existing file.
///
/// The file already contains the media data, so the media data that the muxer writes is discarded.
/// The bytes beyond the end of the file are the new index, which the caller appends to the file.
final class IndexSink: MuxerSink {
  /// The size of the existing file, which is also the offset of the new index.
  private let start: Int64
  private(set) var bytes: [UInt8] = []

  init(start: Int64) { self.start = start }

  override var byteCount: Int64 { start + Int64(bytes.count) }

  override func receive(_ source: UnsafeRawBufferPointer) -> Int32 {
    let first = position - start
    guard first >= 0 else { return 0 }
    let end = Int(first) + source.count
    if bytes.count < end { bytes += repeatElement(0, count: end - bytes.count) }
    bytes.withUnsafeMutableBytes {
      UnsafeMutableRawBufferPointer(rebasing: $0[Int(first)..<end]).copyMemory(from: source)
    }
    return 0
  }
}

/// Placeholder bytes for packets that are already in a file.
///
/// The muxer requires bytes, but the values of these bytes are never used.
package final class PlaceholderBytes {
  fileprivate var buffer: UnsafeMutablePointer<AVBufferRef>?
  package let count: Int

  /// Reserves `count` bytes, which must be the size of the largest packet.
  ///
  /// - Throws: `LibAVError` if memory is unavailable.
  package init(count: Int) throws(LibAVError) {
    self.count = count
    // calloc(3) returns pages of zeros, which use no physical memory until they are written.
    let size = count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
    if let start = calloc(1, size) {
      buffer = av_buffer_create(start.assumingMemoryBound(to: UInt8.self), size, nil, nil, 0)
      if buffer == nil { free(start) }
    }
    guard buffer != nil else {
      throw LibAVError("allocate", "a packet of \(count) bytes", code: CFFmpeg_ENOMEM)
    }
  }

  deinit { av_buffer_unref(&buffer) }

  /// Makes a packet refer to the first `byteCount` placeholder bytes.
  func fill(_ packet: UnsafeMutablePointer<AVPacket>, byteCount: Int) throws(LibAVError) {
    guard byteCount <= count, let shared = av_buffer_ref(buffer) else {
      throw LibAVError("allocate", "a packet of \(byteCount) bytes", code: CFFmpeg_ENOMEM)
    }
    packet.pointee.buf = shared
    packet.pointee.data = shared.pointee.data
    packet.pointee.size = Int32(clamping: byteCount)
  }
}
