// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
package import OvercrankMediaCore

/// Draws SVG documents with libavcodec's decoder, which calls librsvg.
package enum SVGImage {
  /// Draws a document in its own size.
  ///
  /// The result is in the format `bgra`, premultiplied by alpha. Text is drawn with the installed
  /// fonts. librsvg chooses a font for each script, joins Arabic letters and orders text from right
  /// to left.
  ///
  /// May be called from any thread. The first call in a process takes longer, because it reads the
  /// list of fonts.
  ///
  /// - Throws: `CallFailure` with the operation "find" if FFmpeg was built without librsvg, or
  ///   "draw".
  package static func draw(_ document: String) throws(CallFailure) -> MediaFrame {
    guard let codec = avcodec_find_decoder_by_name("librsvg") else {
      throw CallFailure("find", "the decoder librsvg", code: CFFmpeg_DECODER_NOT_FOUND)
    }
    var context = avcodec_alloc_context3(codec)
    guard let decoder = context else {
      throw CallFailure("allocate", "a decoder", code: CFFmpeg_ENOMEM)
    }
    defer { avcodec_free_context(&context) }
    try CallFailure.check(avcodec_open2(decoder, codec, nil), "draw", "an SVG image")
    let packet = try Packet(copying: Array(document.utf8))
    try CallFailure.check(avcodec_send_packet(decoder, packet.pointer), "draw", "an SVG image")
    let frame = try MediaFrame()
    try CallFailure.check(avcodec_receive_frame(decoder, frame.pointer), "draw", "an SVG image")
    return frame
  }

  /// Text for a document, with a question mark for each character that XML does not allow.
  package static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "\u{20}"..."\u{7E}", "\u{A0}"..."\u{FFFD}", "\u{10000}"...:
        result.unicodeScalars.append(scalar)
      default: result += "?"
      }
    }
    return result
  }
}
