// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore
package import OvercrankMovieFormat

/// An encoded packet of one track, from a demuxer or an encoder.
///
/// The bytes are shared by reference and never changed. Times are in ticks of the time base of the
/// demuxer or encoder. A time of `AV_NOPTS_VALUE` becomes nil.
package final class Packet: @unchecked Sendable {
  // The packet is not changed after its initialization, so threads may share it.
  let pointer: UnsafeMutablePointer<AVPacket>

  /// Takes ownership of a packet that FFmpeg allocated.
  init(owning pointer: UnsafeMutablePointer<AVPacket>) { self.pointer = pointer }

  /// Creates a packet by copying bytes.
  ///
  /// - Throws: `CallFailure` if memory is unavailable.
  package init(
    copying bytes: UnsafeRawBufferPointer, pts: Int64, dts: Int64, duration: Int64,
    isKeyFrame: Bool
  ) throws(CallFailure) {
    guard let size = Int32(exactly: bytes.count), let packet = av_packet_alloc() as Optional else {
      throw CallFailure("allocate", "a packet", code: CFFmpeg_ENOMEM)
    }
    let result = av_new_packet(packet, size)
    guard result >= 0 else {
      var gone: UnsafeMutablePointer<AVPacket>? = packet
      av_packet_free(&gone)
      throw CallFailure("allocate", "a packet of \(size) bytes", code: result)
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

  /// Creates a key frame at time zero with a duration of one tick, by copying bytes.
  ///
  /// - Throws: `CallFailure` if memory is unavailable.
  package convenience init(copying bytes: [UInt8]) throws(CallFailure) {
    let copied = try bytes.span.withUnsafeBytes { (bytes) throws(CallFailure) in
      try Packet(copying: bytes, pts: 0, dts: 0, duration: 1, isKeyFrame: true)
    }
    guard let clone = av_packet_clone(copied.pointer) else {
      throw CallFailure("allocate", "a packet", code: CFFmpeg_ENOMEM)
    }
    self.init(owning: clone)
  }

  deinit {
    var packet: UnsafeMutablePointer<AVPacket>? = pointer
    av_packet_free(&packet)
  }

  /// The index of the track to which the packet belongs in the demuxer.
  package var trackIndex: Int { Int(pointer.pointee.stream_index) }
  /// The presentation time of the packet in ticks; nil if unknown.
  package var pts: Int64? { pointer.pointee.pts == CFFmpeg_NOPTS ? nil : pointer.pointee.pts }
  /// The decoding time of the packet in ticks; nil if unknown.
  package var dts: Int64? { pointer.pointee.dts == CFFmpeg_NOPTS ? nil : pointer.pointee.dts }
  /// The duration of the packet in ticks; 0 if unknown.
  package var duration: Int64 { pointer.pointee.duration }
  /// Whether decoding may start at this packet.
  package var isKeyFrame: Bool { pointer.pointee.flags & AV_PKT_FLAG_KEY != 0 }
  /// Whether no other packet depends on this one, according to its container or encoder.
  var isDroppable: Bool { pointer.pointee.flags & AV_PKT_FLAG_DISPOSABLE != 0 }
  /// Whether the demuxer marked the packet as damaged or truncated.
  package var isCorrupt: Bool { pointer.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 }
  /// Whether the bytes of the packet are encrypted (Common Encryption, ISO/IEC 23001-7).
  package var isEncrypted: Bool {
    av_packet_get_side_data(pointer, AV_PKT_DATA_ENCRYPTION_INFO, nil) != nil
  }
  /// Whether the packet is decoded but not shown, because of an edit list.
  package var isDiscarded: Bool { pointer.pointee.flags & AV_PKT_FLAG_DISCARD != 0 }
  /// The number of bytes of encoded data.
  package var byteCount: Int { Int(pointer.pointee.size) }

  /// The byte offset of the packet in its file; nil if unknown.
  package var position: Int64? { pointer.pointee.pos >= 0 ? pointer.pointee.pos : nil }

  /// Returns the packet with another presentation time and without a decoding time.
  ///
  /// - Throws: `CallFailure` if memory is unavailable.
  package func shown(at ticks: Int64) throws(CallFailure) -> Packet {
    try changed { packet in
      packet.pointee.pts = ticks
      packet.pointee.dts = CFFmpeg_NOPTS
    }
  }

  /// Returns the packet with `ticks` added to its times.
  ///
  /// - Throws: `CallFailure` if memory is unavailable.
  package func moved(by ticks: Int64) throws(CallFailure) -> Packet {
    try changed { packet in
      if packet.pointee.pts != CFFmpeg_NOPTS { packet.pointee.pts &+= ticks }
      if packet.pointee.dts != CFFmpeg_NOPTS { packet.pointee.dts &+= ticks }
    }
  }

  /// Returns the packet without its key frame flag.
  ///
  /// - Throws: `CallFailure` if memory is unavailable.
  package func withoutKeyFlag() throws(CallFailure) -> Packet {
    try changed { $0.pointee.flags &= ~AV_PKT_FLAG_KEY }
  }

  /// Returns a modified copy of the packet.
  ///
  /// The copy shares its bytes with this packet, unless the change modifies the bytes.
  ///
  /// - Throws: `CallFailure` if memory is unavailable, and the errors of `change`.
  func changed(
    _ change: (UnsafeMutablePointer<AVPacket>) throws(CallFailure) -> Void
  ) throws(CallFailure) -> Packet {
    guard let clone = av_packet_clone(pointer) else {
      throw CallFailure("allocate", "a packet", code: CFFmpeg_ENOMEM)
    }
    let copy = Packet(owning: clone)
    try change(clone)
    return copy
  }

  /// Gives access to the bytes of the packet, which are valid only inside the closure.
  package func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: pointer.pointee.data, count: byteCount))
  }
}

extension Packet {
  /// Returns the packet with a length prefix before each NAL unit instead of a start code.
  ///
  /// - Parameter lengthSize: The size of a length prefix in bytes. Nil returns the packet
  ///   unchanged.
  /// - Returns: The converted packet, with the same times.
  /// - Throws: `CallFailure` if memory is unavailable, or if a NAL unit is too long for the prefix.
  package func lengthPrefixed(_ lengthSize: Int?) throws(CallFailure) -> Packet {
    lengthSize == nil ? self : try changingUnits(from: nil, to: lengthSize) { $0 }
  }

  /// Returns the packet with changed NAL units.
  ///
  /// - Parameters:
  ///   - lengthSize: The size of a length prefix in this packet in bytes; nil for start codes.
  ///   - newSize: The same for the new packet.
  ///   - change: Returns the new bytes of a NAL unit; nil if it cannot be changed.
  /// - Returns: The new packet, with the same times.
  /// - Throws: `CallFailure` if memory is unavailable, if a NAL unit is too long for the prefix, or if one
  ///   cannot be changed.
  package func changingUnits(
    from lengthSize: Int?, to newSize: Int?, _ change: ([UInt8]) -> [UInt8]?
  ) throws(CallFailure) -> Packet {
    let bytes = withBytes { buffer -> [UInt8]? in
      var bytes: [UInt8] = []
      bytes.reserveCapacity(buffer.count + 16)
      var units = NALUnitReader(buffer, lengthSize: lengthSize)
      while let range = units.next() {
        guard let unit = change(Array(buffer[range])) else { return nil }
        if let newSize {
          guard newSize >= 4 || unit.count < 1 << (8 * newSize) else { return nil }
          for byte in (0..<newSize).reversed() {
            bytes.append(UInt8(truncatingIfNeeded: unit.count >> (8 * byte)))
          }
        } else {
          bytes += [0, 0, 0, 1]
        }
        bytes += unit
      }
      return bytes
    }
    guard let bytes, !bytes.isEmpty else {
      throw CallFailure("store the NAL units of", "a frame", code: -22)
    }
    let pts = pts ?? 0
    return try bytes.span.withUnsafeBytes { (buffer) throws(CallFailure) in
      try Packet(
        copying: buffer, pts: pts, dts: dts ?? pts, duration: duration, isKeyFrame: isKeyFrame)
    }
  }
}

extension Packet {
  /// Finds parameter sets between the two fields of an H.264 frame.
  ///
  /// - Parameter lengthSize: The size of a length prefix in bytes; nil for start codes.
  /// - Returns: The offset in bytes at which they begin; nil if there are none.
  func parameterChange(_ lengthSize: Int?) -> Int? {
    withBytes { bytes in
      var units = NALUnitReader(bytes, lengthSize: lengthSize)
      var (sliceEnd, change): (Int?, Int?) = (nil, nil)
      while let unit = units.next() {
        switch bytes[unit.lowerBound] & 0x1F {
        case 1...5:
          if let change { return change }
          sliceEnd = unit.upperBound
        case 7, 8: change = change ?? sliceEnd
        default: break
        }
      }
      return nil
    }
  }

  /// Returns the packet with the bytes before an offset, and one without times with the others.
  ///
  /// - Throws: `CallFailure` if there is no memory.
  func split(at offset: Int) throws(CallFailure) -> (Packet, Packet) {
    let first = try changed { $0.pointee.size = Int32(clamping: offset) }
    let second = try changed { packet in
      packet.pointee.data += offset
      packet.pointee.size -= Int32(clamping: offset)
      (packet.pointee.pts, packet.pointee.dts) = (CFFmpeg_NOPTS, CFFmpeg_NOPTS)
    }
    return (first, second)
  }
}

extension H264Headers {
  /// Reads the parameter sets from the codec parameters of a track.
  ///
  /// Returns nil if the track is not H.264, or if its codec parameters contain none.
  package init?(_ parameters: CodecParameters) {
    guard parameters.codecName == "h264" else { return nil }
    self.init(parameters.extradata, unitLengthSize: parameters.unitLengthSize)
  }
}

extension HEVCHeaders {
  /// Reads the parameter sets of a track.
  ///
  /// Returns nil if the track is not HEVC, or if its codec parameters contain none.
  package init?(_ parameters: CodecParameters) {
    guard parameters.codecName == "hevc" else { return nil }
    self.init(parameters.extradata, unitLengthSize: parameters.unitLengthSize)
  }
}
