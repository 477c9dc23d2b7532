// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMovieFormat

extension PacketParser {
  /// Creates a parser that detects the fields of interlaced frames.
  ///
  /// Returns nil if the track is not H.264, or if its first frames were progressive.
  static func ofFields(_ track: TrackFormat) -> PacketParser? {
    guard track.kind == .video, track.parameters.codecID == AV_CODEC_ID_H264,
      track.parameters.pointer.pointee.field_order != AV_FIELD_PROGRESSIVE
    else { return nil }
    return PacketParser(track.parameters)
  }

  /// Whether a packet of the track is a frame or a field.
  func fieldContent(of packet: Packet) -> FieldPairs<Packet>.Content {
    let headers = headers(of: packet)
    switch headers.picture_structure {
    case AV_PICTURE_STRUCTURE_TOP_FIELD, AV_PICTURE_STRUCTURE_BOTTOM_FIELD:
      // libavcodec's parser sets `field_order` to TT or BB only at the second field of a frame. The
      // field before that one has the other parity and the same `frame_num`.
      return [AV_FIELD_TT, AV_FIELD_BB].contains(headers.field_order) ? .secondField : .firstField
    default: return .frame
    }
  }
}

extension Packet {
  /// Returns a packet with the bytes of this packet and the next one, and with the times of this
  /// packet.
  ///
  /// - Throws: `LibAVError` if memory is unavailable.
  func joined(with next: Packet) throws(LibAVError) -> Packet {
    try changed { packet throws(LibAVError) in
      let start = byteCount
      try LibAVError.check(
        av_grow_packet(packet, Int32(clamping: next.byteCount)), "allocate", "a packet")
      next.withBytes { bytes in
        if let source = bytes.baseAddress {
          UnsafeMutableRawPointer(packet.pointee.data).advanced(by: start)
            .copyMemory(from: source, byteCount: bytes.count)
        }
      }
      packet.pointee.duration += next.duration
      packet.pointee.flags |= next.pointer.pointee.flags & AV_PKT_FLAG_CORRUPT
    }
  }
}
