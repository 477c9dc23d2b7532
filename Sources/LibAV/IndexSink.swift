// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc

/// Receives the output of a muxer, and keeps only the bytes after the end of an existing file.
///
/// The file already contains the media data, so the media data that the muxer writes is discarded.
/// The output after the end of the file is the new index. The caller appends it to the file.
final class IndexSink {
  /// The size of the file, where the index will begin.
  private let start: Int64
  private(set) var bytes: [UInt8] = []
  private var position: Int64 = 0
  private static let bufferBytes = 1 << 16

  init(start: Int64) { self.start = start }

  /// Makes an I/O context that writes to this sink.
  ///
  /// The sink must outlive the context.
  func makeContext() -> UnsafeMutablePointer<AVIOContext>? {
    guard let buffer = av_malloc(Self.bufferBytes) else { return nil }
    let context = avio_alloc_context(
      buffer.assumingMemoryBound(to: UInt8.self), Int32(Self.bufferBytes), 1,
      Unmanaged.passUnretained(self).toOpaque(), nil,
      { sink, source, count in
        guard let sink, let source else { return CFFmpeg_EINVAL }
        Unmanaged<IndexSink>.fromOpaque(sink).takeUnretainedValue()
          .write(UnsafeRawBufferPointer(start: source, count: Int(count)))
        return count
      },
      { sink, offset, whence in
        guard let sink else { return -1 }
        return Unmanaged<IndexSink>.fromOpaque(sink).takeUnretainedValue().seek(offset, whence)
      })
    if context == nil { av_free(buffer) }
    return context
  }

  /// Frees a context from ``makeContext()`` and its buffer.
  static func free(_ context: inout UnsafeMutablePointer<AVIOContext>?) {
    av_free(context?.pointee.buffer)
    avio_context_free(&context)
  }

  private func write(_ source: UnsafeRawBufferPointer) {
    let first = position - start
    position += Int64(source.count)
    guard first >= 0 else { return }
    let end = Int(first) + source.count
    if bytes.count < end { bytes += repeatElement(0, count: end - bytes.count) }
    bytes.withUnsafeMutableBytes {
      UnsafeMutableRawBufferPointer(rebasing: $0[Int(first)..<end]).copyMemory(from: source)
    }
  }

  private func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
    switch whence & ~AVSEEK_FORCE {
    case SEEK_SET: position = offset
    case SEEK_CUR: position += offset
    case AVSEEK_SIZE, SEEK_END: return start + Int64(bytes.count)
    default: return -1
    }
    return position
  }
}

/// Placeholder bytes for packets that are already in a file.
///
/// The muxer needs bytes, but their values are never used.
package final class PlaceholderBytes {
  fileprivate var buffer: UnsafeMutablePointer<AVBufferRef>?
  package let count: Int

  /// Reserves `count` bytes, the size of the largest packet.
  ///
  /// - Throws: `LibAVError` if there is no memory.
  package init(count: Int) throws(LibAVError) {
    self.count = count
    // calloc(3) returns zero pages, which use no physical memory until they are accessed.
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

  /// Makes a packet that references `byteCount` of the bytes.
  func fill(_ packet: UnsafeMutablePointer<AVPacket>, byteCount: Int) throws(LibAVError) {
    guard byteCount <= count, let shared = av_buffer_ref(buffer) else {
      throw LibAVError("allocate", "a packet of \(byteCount) bytes", code: CFFmpeg_ENOMEM)
    }
    packet.pointee.buf = shared
    packet.pointee.data = shared.pointee.data
    packet.pointee.size = Int32(clamping: byteCount)
  }
}
