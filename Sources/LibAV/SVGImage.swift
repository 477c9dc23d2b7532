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
  /// - Parameters:
  ///   - document: The document. Neither side may have more than 32767 pixels.
  ///   - name: The name of libavcodec's decoder.
  /// - Returns: The image.
  /// - Throws: `CallFailure` of the kind `.notFound` if FFmpeg was built without librsvg, or of
  ///   another kind if it cannot draw the document.
  package static func draw(
    _ document: String, decoder name: String = "librsvg"
  ) throws(CallFailure) -> MediaFrame {
    guard let codec = avcodec_find_decoder_by_name(name) else {
      throw CallFailure(
        "draw", "an SVG image", LibAVCode.number(CFFmpeg_DECODER_NOT_FOUND), .notFound,
        reason: "FFmpeg was built without \(name)")
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

  /// A string of CSS in single quotes, for an attribute in double quotes.
  package static func quoted(_ text: String) -> String {
    var result = "'"
    for scalar in text.unicodeScalars {
      if scalar == "'" || scalar == "\\" { result += "\\" }
      result.unicodeScalars.append(scalar)
    }
    return escaped(result + "'")
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
