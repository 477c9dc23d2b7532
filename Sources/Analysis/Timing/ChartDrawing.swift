// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

/// A drawing of filled rectangles and lines of text, in whole pixels.
///
/// It is written as SVG or painted as PNG, so that both show the same.
struct ChartDrawing {
  enum Anchor: String { case start, middle, end }

  private enum Element {
    case rectangle(x: Int, y: Int, width: Int, height: Int, Color)
    case text(String, x: Int, y: Int, Color)
  }

  let width: Int
  let height: Int
  private var elements: [Element] = []

  /// The size in pixels of one dot of a ``DotFont`` character, and the distance between characters.
  private static let scale = 2
  static let advance = (DotFont.width + 1) * scale
  static let lineHeight = DotFont.height * scale

  /// Makes a white drawing.
  init(width: Int, height: Int) {
    (self.width, self.height) = (width, height)
  }

  /// Adds a rectangle.
  ///
  /// The part outside the drawing is left out.
  mutating func fill(x: Int, y: Int, width: Int, height: Int, _ color: Color) {
    let (left, top) = (max(0, x), max(0, y))
    let (right, bottom) = (min(self.width, x + width), min(self.height, y + height))
    guard left < right, top < bottom else { return }
    elements.append(
      .rectangle(x: left, y: top, width: right - left, height: bottom - top, color))
  }

  /// Adds a line of text.
  ///
  /// `y` is the top of its letters.
  mutating func write(
    _ text: String, x: Int, y: Int, anchor: Anchor = .start, _ color: Color = .ink
  ) {
    let length = Self.length(of: text)
    let left =
      switch anchor {
      case .start: x
      case .middle: x - length / 2
      case .end: x - length
      }
    elements.append(.text(text, x: left, y: y, color))
  }

  /// The width of a text in pixels.
  static func length(of text: String) -> Int {
    max(0, text.unicodeScalars.count * advance - scale)
  }

  /// The drawing as an SVG document.
  func svg() -> String {
    var text = """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" \
      viewBox="0 0 \(width) \(height)" font-family="monospace" font-size="18">
      <rect width="\(width)" height="\(height)" fill="#ffffff"/>

      """
    for element in elements {
      switch element {
      case .rectangle(let x, let y, let width, let height, let color):
        text += """
          <rect x="\(x)" y="\(y)" width="\(width)" height="\(height)" \
          fill="\(color.hexadecimal)"/>

          """
      case .text(let line, let x, let y, let color):
        text += """
          <text x="\(x)" y="\(y + Self.lineHeight)" textLength="\(Self.length(of: line))" \
          lengthAdjust="spacingAndGlyphs" fill="\(color.hexadecimal)">\(Self.escaped(line))</text>

          """
      }
    }
    return text + "</svg>\n"
  }

  /// The drawing as a PNG file.
  ///
  /// - Throws: `CallFailure` if the encoder is missing.
  func png() throws(CallFailure) -> [UInt8] {
    let frame = try MediaFrame.video(width: width, height: height, pixelFormat: .rgb24)
    guard let pixels = frame.planeData(0) else { return try frame.pngBytes() }
    let stride = frame.bytesPerRow(0)
    func paint(_ x: Int, _ y: Int, _ width: Int, _ height: Int, _ color: Color) {
      for row in max(0, y)..<max(0, y, min(self.height, y + height)) {
        for column in max(0, x)..<max(0, x, min(self.width, x + width)) {
          let pixel = pixels + row * stride + column * 3
          (pixel[0], pixel[1], pixel[2]) = (color.red, color.green, color.blue)
        }
      }
    }
    paint(0, 0, width, height, .white)
    for element in elements {
      switch element {
      case .rectangle(let x, let y, let width, let height, let color):
        paint(x, y, width, height, color)
      case .text(let line, let x, let y, let color):
        for (index, scalar) in line.unicodeScalars.enumerated() {
          let character = scalar.isASCII ? UInt8(scalar.value) : UInt8(ascii: "?")
          DotFont.forEachRectangle(
            of: character, x: x + index * Self.advance, y: y, scale: Self.scale
          ) { paint($0.x, $0.y, $0.width, $0.height, color) }
        }
      }
    }
    return try frame.pngBytes()
  }

  /// Text for XML, without the characters that XML does not allow.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\u{20}"..."\u{7E}", "\u{A0}"..."\u{FFFD}", "\u{10000}"...:
        result.unicodeScalars.append(scalar)
      default: result += "?"
      }
    }
    return result
  }
}

extension Color {
  static let white = Color(0xFFFFFF)
  static let ink = Color(0x222222)
  static let faint = Color(0xDADADA)
  static let regular = Color(0x2B5CA4)
  static let gap = Color(0xC82424)
  static let repeated = Color(0xE08E00)
}
