// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster

/// A chart as an SVG document: filled rectangles, dashed lines and lines of text.
///
/// A PNG file is drawn from the document, so that both show the same.
struct ChartDrawing {
  enum Anchor: String { case start, middle, end }

  private struct Text {
    let text: String
    let x: Int
    let y: Int
    let anchor: Anchor
    let isUpward: Bool
    let color: Color
  }

  let width: Int
  let height: Int
  /// The document without its text.
  private var shapes = ""
  private var texts: [Text] = []

  /// The scale of text, as in `TextMask`.
  private static let scale = 2
  private static let fontSize = 18
  /// The least distance from text to the left and right edge.
  private static let margin = 4

  /// Makes a white drawing.
  init(width: Int, height: Int) {
    (self.width, self.height) = (width, height)
  }

  /// Adds a rectangle.
  ///
  /// The part outside the drawing is left out.
  mutating func fill(x: Int, y: Int, width: Int, height: Int, _ color: Color) {
    let rect = PixelRect(x: x, y: y, width: width, height: height)
      .clamped(width: self.width, height: self.height)
    guard !rect.isEmpty else { return }
    shapes += """
      <rect x="\(rect.x)" y="\(rect.y)" width="\(rect.width)" height="\(rect.height)" \
      fill="\(color.hexadecimal)"/>

      """
  }

  /// Adds a dashed line from left to right, or downward.
  mutating func dash(x: Int, y: Int, toX right: Int, toY bottom: Int, _ color: Color) {
    shapes += """
      <path d="M\(x).5 \(y).5L\(right).5 \(bottom).5" stroke="\(color.hexadecimal)" stroke-width="1" \
      stroke-dasharray="10 6"/>

      """
  }

  /// Adds a line of text, which is shortened if the drawing is too narrow, and moved if it would
  /// reach beyond the left or right edge.
  ///
  /// `y` is the top of capital letters. The text is written to the right or upward.
  mutating func write(
    _ text: String, x: Int, y: Int, anchor: Anchor = .start, isUpward: Bool = false,
    _ color: Color = .ink
  ) {
    let text = InstalledFont.standard.fitting(text, width: width - 40, scale: Self.scale)
    var x = x
    if !isUpward {
      let textWidth = InstalledFont.standard.width(of: text, scale: Self.scale)
      let before = anchor == .start ? 0 : anchor == .middle ? textWidth / 2 : textWidth
      x = min(max(x, Self.margin + before), width - Self.margin - (textWidth - before))
    }
    texts.append(Text(text: text, x: x, y: y, anchor: anchor, isUpward: isUpward, color: color))
  }

  /// The drawing as an SVG document.
  func svg() -> String {
    document(
      texts.map { text in
        let y = text.y + TextMask.capHeight * Self.scale
        let rotation = text.isUpward ? " transform=\"rotate(-90 \(text.x) \(y))\"" : ""
        return """
          <text x="\(text.x)" y="\(y)" text-anchor="\(text.anchor.rawValue)"\(rotation) \
          fill="\(text.color.hexadecimal)">\(SVGImage.escaped(text.text))</text>

          """
      })
  }

  /// The drawing as a PNG file.
  ///
  /// On a machine without fonts, its text is in the library's own font.
  ///
  /// - Throws: `CallFailure` of the kind `.notFound` if FFmpeg was built without librsvg, and others
  ///   if the document cannot be drawn or encoded.
  func png() throws(CallFailure) -> [UInt8] {
    let font = InstalledFont.standard
    let image = try SVGImage.draw(font.isDots ? document(texts.map(Self.dots)) : svg())
    var converter = FrameConverter(to: .rgb24, isFullRange: true)
    return try converter.convert(image).pngBytes()
  }

  private func document(_ texts: [String]) -> String {
    """
    <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" \
    viewBox="0 0 \(width) \(height)" font-family="monospace" font-size="\(Self.fontSize)">
    <rect width="\(width)" height="\(height)" fill="#ffffff"/>
    \(shapes)\(texts.joined())</svg>

    """
  }

  /// A text whose characters are drawn as rectangles.
  private static func dots(_ text: Text) -> String {
    let width = InstalledFont.dots.width(of: text.text, scale: scale)
    let left = text.anchor == .start ? 0 : text.anchor == .middle ? -width / 2 : -width
    let path = InstalledFont.dots.mask(of: text.text, scale: scale)
      .rectangles(x: left, y: -TextMask.capHeight * scale)
      .map { "M\($0.x) \($0.y)h\($0.width)v1h-\($0.width)z" }.joined()
    return """
      <path transform="translate(\(text.x) \(text.y + TextMask.capHeight * scale))\
      \(text.isUpward ? " rotate(-90)" : "")" fill="\(text.color.hexadecimal)" d="\(path)"/>

      """
  }
}

extension Color {
  static let ink = Color(0x222222)
  static let faint = Color(0xDADADA)
  static let regular = Color(0x2B5CA4)
  static let gap = Color(0xC82424)
  static let repeated = Color(0xE08E00)
  static let expected = Color(0x2E8540)
}
