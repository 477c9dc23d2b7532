// SPDX-License-Identifier: Apache-2.0

import CFFmpeg

/// Joins the two fields of an interlaced H.264 frame where a container stores each in a packet.
///
/// MPEG transport streams do (AVCHD cameras): each field is an access unit of its own, while a
/// decoder gives one frame for both. (Rec. ITU-T H.264, 3.30: complementary field pairs.)
struct FieldPairs: ~Copyable {
  private let parser: PacketParser
  private let track: Int
  /// A first field whose second has not come yet.
  private var first: Packet?
  /// What other tracks gave meanwhile.
  private var others: [Packet] = []
  /// Packets in the order in which they are to be given.
  private var ready: [Packet] = []

  /// Prepares for a track; nil where it is no H.264, or its first frames were progressive.
  init?(_ track: TrackFormat) {
    guard track.kind == .video, track.parameters.codecID == AV_CODEC_ID_H264,
      track.parameters.pointer.pointee.field_order != AV_FIELD_PROGRESSIVE,
      let parser = PacketParser(track.parameters)
    else { return nil }
    self.parser = parser
    self.track = track.index
  }

  /// The next packet that can be given, or nil when more must be read first.
  mutating func next() -> Packet? { ready.isEmpty ? nil : ready.removeFirst() }

  /// Takes a packet that was read.
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

  /// Gives the rest at the end of the file.
  mutating func finish() {
    if let first { ready.append(first) }
    first = nil
    ready += others
    others = []
  }

  /// Forgets what waits, to go on somewhere else.
  mutating func reset() { (first, others, ready) = (nil, [], []) }

  private enum Field { case none, first, second }

  /// What a packet holds: a frame, or a field that may be the first of two or follows one that it
  /// completes.
  private func field(of packet: Packet) -> Field {
    let headers = parser.headers(of: packet)
    switch headers.picture_structure {
    case AV_PICTURE_STRUCTURE_TOP_FIELD, AV_PICTURE_STRUCTURE_BOTTOM_FIELD:
      // The parser tells the order of fields only at one that follows its like of the other parity
      // and of the same frame_num.
      return [AV_FIELD_TT, AV_FIELD_BB].contains(headers.field_order) ? .second : .first
    default: return .none
    }
  }
}

extension Packet {
  /// One packet with the bytes of this and of the next, and the times of this.
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
