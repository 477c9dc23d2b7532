// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// Computes the size of text in ``DotFont``, and the rectangles that draw its dots.
enum DrawingText {
  /// The number of dots from the left edge of one character to the left edge of the next.
  private static let advance = DotFont.width + 1

  /// The height of a line of text in pixels.
  static func height(scale: Int) -> Int { DotFont.height * scale }

  /// The width of a text in pixels, without the space after its last character.
  static func width(_ text: String, scale: Int) -> Int {
    max(0, text.unicodeScalars.count * advance - 1) * scale
  }

  /// The text, shortened with `..` at the end if it does not fit into a width in pixels.
  static func fitting(_ text: String, width: Int, scale: Int) -> String {
    guard self.width(text, scale: scale) > width else { return text }
    let count = max(0, width / scale + 1) / advance
    guard count > 2 else { return "" }
    return String(text.unicodeScalars.prefix(count - 2)) + ".."
  }

  /// The rectangles that draw a text.
  ///
  /// Adjacent dots in one row of a character form one rectangle.
  static func rectangles(_ text: String, x: Int, y: Int, scale: Int) -> [ViewRect] {
    var rectangles: [ViewRect] = []
    for (index, scalar) in text.unicodeScalars.enumerated() {
      let character = code(scalar)
      let left = x + index * advance * scale
      for line in 0..<DotFont.height {
        let dots = DotFont.dots(of: character, line: line)
        var column = 0
        while column < DotFont.width {
          let start = column
          while column < DotFont.width, dots >> UInt64(DotFont.width - 1 - column) & 1 == 1 {
            column += 1
          }
          if column > start {
            rectangles.append(
              ViewRect(
                x: left + start * scale, y: y + line * scale, width: (column - start) * scale,
                height: scale))
          }
          column += 1
        }
      }
    }
    return rectangles
  }

  /// The font's code for a character, or the code of `?` if the font lacks the character.
  private static func code(_ scalar: Unicode.Scalar) -> UInt8 {
    switch scalar.value {
    case 0x20..<0x7F, UInt32(DotFont.middleDot): UInt8(scalar.value)
    default: UInt8(ascii: "?")
    }
  }
}
