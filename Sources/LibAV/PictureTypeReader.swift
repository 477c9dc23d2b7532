// SPDX-License-Identifier: Apache-2.0
import CFFmpeg

/// Reads from a packet's own bytes whether its picture is predicted from others, for codecs whose
/// libavcodec parser tells: MPEG-1, MPEG-2 and MPEG-4 Part 2.
package final class PictureTypeReader {
  private let parser: UnsafeMutablePointer<AVCodecParserContext>
  private let context: UnsafeMutablePointer<AVCodecContext>

  /// Prepares for a track; nil for other codecs.
  package init?(_ parameters: CodecParameters) {
    let codecs = [AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4]
    guard codecs.contains(parameters.codecID),
      let parser = av_parser_init(Int32(bitPattern: parameters.codecID.rawValue))
    else { return nil }
    guard let context = avcodec_alloc_context3(nil) else {
      av_parser_close(parser)
      return nil
    }
    parser.pointee.flags |= PARSER_FLAG_COMPLETE_FRAMES
    avcodec_parameters_to_context(context, parameters.pointer)
    self.parser = parser
    self.context = context
  }

  deinit {
    av_parser_close(parser)
    var gone: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&gone)
  }

  /// Whether a packet's picture needs no other.
  package func isIntra(_ packet: Packet) -> Bool {
    var (data, size): (UnsafeMutablePointer<UInt8>?, Int32) = (nil, 0)
    _ = av_parser_parse2(
      parser, context, &data, &size, packet.pointer.pointee.data, packet.pointer.pointee.size,
      CFFmpeg_NOPTS, CFFmpeg_NOPTS, 0)
    return parser.pointee.pict_type == Int32(bitPattern: AV_PICTURE_TYPE_I.rawValue)
  }
}
