// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc

/// Receives the output of a muxer, instead of a file.
class MuxerSink {
  /// The byte offset in the output at which the muxer writes next.
  private(set) var position: Int64 = 0
  private static let bufferBytes = 1 << 16

  /// The current size of the output in bytes.
  var byteCount: Int64 { 0 }

  /// Receives bytes that belong at ``position``.
  ///
  /// Returns zero, or a negative error code.
  func receive(_ source: UnsafeRawBufferPointer) -> Int32 { 0 }

  /// Creates an I/O context that writes to this sink.
  ///
  /// The sink must outlive the context.
  func makeContext() -> UnsafeMutablePointer<AVIOContext>? {
    guard let buffer = av_malloc(Self.bufferBytes) else { return nil }
    let context = avio_alloc_context(
      buffer.assumingMemoryBound(to: UInt8.self), Int32(Self.bufferBytes), 1,
      Unmanaged.passUnretained(self).toOpaque(), nil,
      { sink, source, count in
        guard let sink, let source else { return CFFmpeg_EINVAL }
        return Unmanaged<MuxerSink>.fromOpaque(sink).takeUnretainedValue()
          .write(UnsafeRawBufferPointer(start: source, count: Int(count)))
      },
      { sink, offset, whence in
        guard let sink else { return -1 }
        return Unmanaged<MuxerSink>.fromOpaque(sink).takeUnretainedValue().seek(offset, whence)
      })
    if context == nil { av_free(buffer) }
    return context
  }

  /// Frees a context from ``makeContext()`` and the buffer of the context.
  static func free(_ context: inout UnsafeMutablePointer<AVIOContext>?) {
    av_free(context?.pointee.buffer)
    avio_context_free(&context)
  }

  private func write(_ source: UnsafeRawBufferPointer) -> Int32 {
    let result = receive(source)
    guard result == 0 else { return result }
    position += Int64(source.count)
    return Int32(clamping: source.count)
  }

  private func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
    switch whence & ~AVSEEK_FORCE {
    case SEEK_SET: position = offset
    case SEEK_CUR: position += offset
    case AVSEEK_SIZE, SEEK_END: return byteCount
    default: return -1
    }
    return position
  }
}
