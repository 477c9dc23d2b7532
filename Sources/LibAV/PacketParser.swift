// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore
import OvercrankMovieFormat

/// A libavcodec parser that reads the headers in complete packets of a track.
package final class PacketParser {
  private let parser: UnsafeMutablePointer<AVCodecParserContext>
  private let context: UnsafeMutablePointer<AVCodecContext>

  /// Creates a parser for a track.
  ///
  /// Returns nil if libavcodec has no parser for the track's codec.
  init?(_ parameters: CodecParameters) {
    guard let parser = av_parser_init(Int32(bitPattern: parameters.codecID.rawValue)) else {
      return nil
    }
    guard let context = avcodec_alloc_context3(nil) else {
      av_parser_close(parser)
      return nil
    }
    parser.pointee.flags |= PARSER_FLAG_COMPLETE_FRAMES
    // The parser needs the codec headers. If the track has no extradata, the parser finds them in
    // the packets.
    avcodec_parameters_to_context(context, parameters.pointer)
    self.parser = parser
    self.context = context
  }

  deinit {
    av_parser_close(parser)
    var gone: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&gone)
  }

  /// Returns the parsed headers of a packet.
  func headers(of packet: Packet) -> AVCodecParserContext {
    var (data, size): (UnsafeMutablePointer<UInt8>?, Int32) = (nil, 0)
    _ = av_parser_parse2(
      parser, context, &data, &size, packet.pointer.pointee.data, packet.pointer.pointee.size,
      CFFmpeg_NOPTS, CFFmpeg_NOPTS, 0)
    return parser.pointee
  }
}

extension PacketParser {
  /// Creates a parser that detects frame types (I, P, B) in MPEG-1, MPEG-2 and MPEG-4 Part 2.
  ///
  /// Returns nil for other codecs.
  package static func ofFrameTypes(_ parameters: CodecParameters) -> PacketParser? {
    let codecs = [AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4]
    return codecs.contains(parameters.codecID) ? PacketParser(parameters) : nil
  }

  /// Whether the packet is an I-frame.
  package func isIntra(_ packet: Packet) -> Bool {
    headers(of: packet).pict_type == Int32(bitPattern: AV_PICTURE_TYPE_I.rawValue)
  }

  /// Whether the packet is a B-frame.
  package func isBidirectional(_ packet: Packet) -> Bool {
    headers(of: packet).pict_type == Int32(bitPattern: AV_PICTURE_TYPE_B.rawValue)
  }

  /// Creates a parser that reads the frame order counts (POC) of H.264 and HEVC.
  ///
  /// Returns nil for other codecs.
  package static func ofFrameOrder(_ parameters: CodecParameters) -> PacketParser? {
    [AV_CODEC_ID_H264, AV_CODEC_ID_HEVC].contains(parameters.codecID)
      ? PacketParser(parameters) : nil
  }

  /// The frame order count (POC) of a packet; 0 if the headers of the packet cannot be read.
  package func frameOrder(of packet: Packet) -> Int {
    Int(headers(of: packet).output_picture_number)
  }
}

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
  /// - Throws: `CallFailure` if memory is unavailable.
  func joined(with next: Packet) throws(CallFailure) -> Packet {
    try changed { packet throws(CallFailure) in
      let start = byteCount
      try CallFailure.check(
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
