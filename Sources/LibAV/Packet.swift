// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// A compressed unit of one track, as a demuxer or an encoder gave it.
///
/// The bytes are shared by reference and never changed, so a packet may go to several places.
/// Times are in ticks of the time base of whoever made it; nil stands for `AV_NOPTS_VALUE`.
package final class Packet: @unchecked Sendable {
  // Immutable once initialised, which is what makes sharing it safe.
  let pointer: UnsafeMutablePointer<AVPacket>

  /// Takes over a packet that libav allocated.
  init(owning pointer: UnsafeMutablePointer<AVPacket>) { self.pointer = pointer }

  /// Copies bytes into a new packet.
  ///
  /// - Throws: `LibAVError` when there is no memory.
  package init(
    copying bytes: UnsafeRawBufferPointer, pts: Int64, dts: Int64, duration: Int64,
    isKeyFrame: Bool
  ) throws(LibAVError) {
    guard let size = Int32(exactly: bytes.count), let packet = av_packet_alloc() as Optional else {
      throw LibAVError("allocate", "a packet", code: CFFmpeg_ENOMEM)
    }
    let result = av_new_packet(packet, size)
    guard result >= 0 else {
      var gone: UnsafeMutablePointer<AVPacket>? = packet
      av_packet_free(&gone)
      throw LibAVError("allocate", "a packet of \(size) bytes", code: result)
    }
    if let source = bytes.baseAddress {
      UnsafeMutableRawPointer(packet.pointee.data).copyMemory(
        from: source, byteCount: bytes.count)
    }
    packet.pointee.pts = pts
    packet.pointee.dts = dts
    packet.pointee.duration = duration
    packet.pointee.flags = isKeyFrame ? AV_PKT_FLAG_KEY : 0
    pointer = packet
  }

  deinit {
    var packet: UnsafeMutablePointer<AVPacket>? = pointer
    av_packet_free(&packet)
  }

  /// The track it belongs to, as the demuxer counts them.
  package var trackIndex: Int { Int(pointer.pointee.stream_index) }
  /// When it is shown, in ticks.
  package var pts: Int64? { pointer.pointee.pts == CFFmpeg_NOPTS ? nil : pointer.pointee.pts }
  /// When it is decoded, in ticks.
  package var dts: Int64? { pointer.pointee.dts == CFFmpeg_NOPTS ? nil : pointer.pointee.dts }
  /// How long it lasts, in ticks; 0 where unknown.
  package var duration: Int64 { pointer.pointee.duration }
  /// Whether decoding may start here.
  package var isKeyFrame: Bool { pointer.pointee.flags & AV_PKT_FLAG_KEY != 0 }
  /// Whether the demuxer found it damaged or cut short.
  package var isCorrupt: Bool { pointer.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 }
  /// Whether its bytes are encrypted, and no key was given (ISO/IEC 23001-7, Common Encryption).
  package var isEncrypted: Bool {
    av_packet_get_side_data(pointer, AV_PKT_DATA_ENCRYPTION_INFO, nil) != nil
  }
  /// Whether it is decoded but not shown, as an edit list asks.
  package var isDiscarded: Bool { pointer.pointee.flags & AV_PKT_FLAG_DISCARD != 0 }
  /// The number of bytes.
  package var byteCount: Int { Int(pointer.pointee.size) }

  /// The same packet with another time of presentation, and no decoding time.
  ///
  /// - Throws: `LibAVError` when there is no memory.
  package func shown(at ticks: Int64) throws(LibAVError) -> Packet {
    try changed { packet in
      packet.pointee.pts = ticks
      packet.pointee.dts = CFFmpeg_NOPTS
    }
  }

  /// The same packet, which no longer claims that decoding may start here.
  ///
  /// - Throws: `LibAVError` when there is no memory.
  package func withoutKeyFlag() throws(LibAVError) -> Packet {
    try changed { $0.pointee.flags &= ~AV_PKT_FLAG_KEY }
  }

  /// A changed copy, which shares the bytes until they are changed.
  ///
  /// - Throws: `LibAVError` when there is no memory, or as the change does.
  func changed(
    _ change: (UnsafeMutablePointer<AVPacket>) throws(LibAVError) -> Void
  ) throws(LibAVError) -> Packet {
    guard let clone = av_packet_clone(pointer) else {
      throw LibAVError("allocate", "a packet", code: CFFmpeg_ENOMEM)
    }
    let copy = Packet(owning: clone)
    try change(clone)
    return copy
  }

  /// The bytes, valid inside the closure.
  package func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: pointer.pointee.data, count: byteCount))
  }
}
