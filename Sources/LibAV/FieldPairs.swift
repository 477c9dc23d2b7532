// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// Joins the two fields of an interlaced H.264 frame, where a container stores them as two packets.
///
/// MPEG transport streams (AVCHD) store each field as its own access unit, but a decoder returns
/// one frame for both (complementary field pairs, Rec. ITU-T H.264, 3.30).
struct FieldPairs: ~Copyable {
  private let parser: PacketParser
  private let track: Int
  /// A first field that waits for its second field.
  private var first: Packet?
  /// Packets of other tracks that arrived while a first field was waiting.
  private var others: [Packet] = []
  /// Finished packets, in output order.
  private var ready: [Packet] = []

  /// Prepares for a track; nil where it is not H.264, or its first frames were progressive.
  init?(_ track: TrackFormat) {
    guard track.kind == .video, track.parameters.codecID == AV_CODEC_ID_H264,
      track.parameters.pointer.pointee.field_order != AV_FIELD_PROGRESSIVE,
      let parser = PacketParser(track.parameters)
    else { return nil }
    self.parser = parser
    self.track = track.index
  }

  /// Returns the next output packet; nil when more packets must be read first.
  mutating func next() -> Packet? { ready.isEmpty ? nil : ready.removeFirst() }

  /// Adds the next packet from the container.
  ///
  /// - Throws: `LibAVError` when there is no memory.
  mutating func append(_ packet: Packet) throws(LibAVError) {
    guard packet.trackIndex == track else {
      if first == nil { ready.append(packet) } else { others.append(packet) }
      return
    }
    let field = field(of: packet)
    if let waiting = first, field == .second {
      first = nil
      ready.append(try waiting.joined(with: packet))
    } else {
      if let waiting = first { ready.append(waiting) }
      first = field == .none ? nil : packet
    }
    ready += others
    others = []
    if first == nil, field != .second { ready.append(packet) }
  }

  /// Outputs the waiting packets at the end of the file.
  mutating func finish() {
    if let first { ready.append(first) }
    first = nil
    ready += others
    others = []
  }

  /// Discards all waiting packets, before a seek.
  mutating func reset() { (first, others, ready) = (nil, [], []) }

  private enum Field { case none, first, second }

  /// Classifies a packet: a frame, a possible first field, or the second field of a pair.
  private func field(of packet: Packet) -> Field {
    let headers = parser.headers(of: packet)
    switch headers.picture_structure {
    case AV_PICTURE_STRUCTURE_TOP_FIELD, AV_PICTURE_STRUCTURE_BOTTOM_FIELD:
      // The parser sets the field order only at a second field: one that follows a field of
      // opposite parity with the same frame_num.
      return [AV_FIELD_TT, AV_FIELD_BB].contains(headers.field_order) ? .second : .first
    default: return .none
    }
  }
}

extension Packet {
  /// Returns one packet with the bytes of both packets and the times of this one.
  fileprivate func joined(with next: Packet) throws(LibAVError) -> Packet {
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
