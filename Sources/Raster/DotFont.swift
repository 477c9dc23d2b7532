// SPDX-License-Identifier: Apache-2.0

/// Characters of 5 by 7 dots: the printable ASCII characters and the middle dot.
package enum DotFont {
  package static let width = 5
  package static let height = 7

  /// The character for the last decimal digit of a number.
  package static func digit(_ number: Int) -> UInt8 { UInt8(ascii: "0") + UInt8(number % 10) }

  /// The code of the middle dot, `·`.
  package static let middleDot: UInt8 = 0xB7

  /// Whether the font has a character.
  package static func contains(_ character: Unicode.Scalar) -> Bool {
    (0x20..<0x7F).contains(character.value) || character.value == UInt32(middleDot)
  }

  /// The dots of one row of a character, as five bits.
  ///
  /// The highest bit is the leftmost dot.
  ///
  /// An unknown character has no dots. The dots are in a `switch`, not in a global table. A global
  /// is initialized at its first use, so each access would take a lock that the real-time threads
  /// of several cameras share.
  package static func dots(of character: UInt8, line: Int) -> UInt64 {
    let isLetter = character & 0x5F > 0x40 && character & 0x5F < 0x5B
    let lines = isLetter ? letter(character) : sign(character)
    return lines >> UInt64(width * (height - 1 - line)) & 0b11111
  }

  /// Calls a closure with the rectangles that draw a character.
  ///
  /// Each dot has `scale` by `scale` pixels. Adjacent dots in a row form one rectangle.
  package static func forEachRectangle(
    of character: UInt8, x: Int, y: Int, scale: Int, _ body: (PixelRect) -> Void
  ) {
    for line in 0..<height {
      let dots = dots(of: character, line: line)
      var column = 0
      while column < width {
        let start = column
        while column < width, dots >> UInt64(width - 1 - column) & 1 == 1 { column += 1 }
        if column > start {
          body(
            PixelRect(
              x: x + start * scale, y: y + line * scale, width: (column - start) * scale,
              height: scale))
        }
        column += 1
      }
    }
  }

  /// The dots of a character that is not a letter, in rows from the top.
  private static func sign(_ character: UInt8) -> UInt64 {
    switch character {
    case UInt8(ascii: "!"): 0b00100_00100_00100_00100_00100_00000_00100
    case UInt8(ascii: "\""): 0b01010_01010_01010_00000_00000_00000_00000
    case UInt8(ascii: "#"): 0b01010_01010_11111_01010_11111_01010_01010
    case UInt8(ascii: "$"): 0b00100_01111_10100_01110_00101_11110_00100
    case UInt8(ascii: "%"): 0b11000_11001_00010_00100_01000_10011_00011
    case UInt8(ascii: "&"): 0b01100_10010_10100_01000_10101_10010_01101
    case UInt8(ascii: "'"): 0b00100_00100_01000_00000_00000_00000_00000
    case UInt8(ascii: "("): 0b00010_00100_01000_01000_01000_00100_00010
    case UInt8(ascii: ")"): 0b01000_00100_00010_00010_00010_00100_01000
    case UInt8(ascii: "*"): 0b00000_00100_10101_01110_10101_00100_00000
    case UInt8(ascii: "+"): 0b00000_00100_00100_11111_00100_00100_00000
    case UInt8(ascii: ","): 0b00000_00000_00000_00000_01100_00100_01000
    case UInt8(ascii: "-"): 0b00000_00000_00000_11111_00000_00000_00000
    case UInt8(ascii: "."): 0b00000_00000_00000_00000_00000_01100_01100
    case UInt8(ascii: "/"): 0b00001_00001_00010_00100_01000_10000_10000
    case UInt8(ascii: "0"): 0b01110_10001_10011_10101_11001_10001_01110
    case UInt8(ascii: "1"): 0b00100_01100_00100_00100_00100_00100_01110
    case UInt8(ascii: "2"): 0b01110_10001_00001_00110_01000_10000_11111
    case UInt8(ascii: "3"): 0b11111_00010_00100_00010_00001_10001_01110
    case UInt8(ascii: "4"): 0b00010_00110_01010_10010_11111_00010_00010
    case UInt8(ascii: "5"): 0b11111_10000_11110_00001_00001_10001_01110
    case UInt8(ascii: "6"): 0b00110_01000_10000_11110_10001_10001_01110
    case UInt8(ascii: "7"): 0b11111_00001_00010_00100_01000_01000_01000
    case UInt8(ascii: "8"): 0b01110_10001_10001_01110_10001_10001_01110
    case UInt8(ascii: "9"): 0b01110_10001_10001_01111_00001_00010_01100
    case UInt8(ascii: ":"): 0b00000_01100_01100_00000_01100_01100_00000
    case UInt8(ascii: ";"): 0b00000_01100_01100_00000_01100_00100_01000
    case UInt8(ascii: "<"): 0b00010_00100_01000_10000_01000_00100_00010
    case UInt8(ascii: "="): 0b00000_00000_11111_00000_11111_00000_00000
    case UInt8(ascii: ">"): 0b01000_00100_00010_00001_00010_00100_01000
    case UInt8(ascii: "?"): 0b01110_10001_00001_00010_00100_00000_00100
    case UInt8(ascii: "@"): 0b01110_10001_00001_01101_10101_10101_01110
    case UInt8(ascii: "["): 0b01110_01000_01000_01000_01000_01000_01110
    case UInt8(ascii: "\\"): 0b10000_10000_01000_00100_00010_00001_00001
    case UInt8(ascii: "]"): 0b01110_00010_00010_00010_00010_00010_01110
    case UInt8(ascii: "^"): 0b00100_01010_10001_00000_00000_00000_00000
    case UInt8(ascii: "_"): 0b00000_00000_00000_00000_00000_00000_11111
    case UInt8(ascii: "`"): 0b01000_00100_00010_00000_00000_00000_00000
    case UInt8(ascii: "{"): 0b00010_00100_00100_01000_00100_00100_00010
    case UInt8(ascii: "|"): 0b00100_00100_00100_00100_00100_00100_00100
    case UInt8(ascii: "}"): 0b01000_00100_00100_00010_00100_00100_01000
    case UInt8(ascii: "~"): 0b00000_00000_01000_10101_00010_00000_00000
    case middleDot: 0b00000_00000_00000_01100_01100_00000_00000
    default: 0
    }
  }

  /// The dots of a letter, in rows from the top.
  private static func letter(_ character: UInt8) -> UInt64 {
    switch character {
    case UInt8(ascii: "A"): 0b01110_10001_10001_10001_11111_10001_10001
    case UInt8(ascii: "B"): 0b11110_10001_10001_11110_10001_10001_11110
    case UInt8(ascii: "C"): 0b01110_10001_10000_10000_10000_10001_01110
    case UInt8(ascii: "D"): 0b11100_10010_10001_10001_10001_10010_11100
    case UInt8(ascii: "E"): 0b11111_10000_10000_11110_10000_10000_11111
    case UInt8(ascii: "F"): 0b11111_10000_10000_11110_10000_10000_10000
    case UInt8(ascii: "G"): 0b01110_10001_10000_10111_10001_10001_01111
    case UInt8(ascii: "H"): 0b10001_10001_10001_11111_10001_10001_10001
    case UInt8(ascii: "I"): 0b01110_00100_00100_00100_00100_00100_01110
    case UInt8(ascii: "J"): 0b00111_00010_00010_00010_00010_10010_01100
    case UInt8(ascii: "K"): 0b10001_10010_10100_11000_10100_10010_10001
    case UInt8(ascii: "L"): 0b10000_10000_10000_10000_10000_10000_11111
    case UInt8(ascii: "M"): 0b10001_11011_10101_10101_10001_10001_10001
    case UInt8(ascii: "N"): 0b10001_10001_11001_10101_10011_10001_10001
    case UInt8(ascii: "O"): 0b01110_10001_10001_10001_10001_10001_01110
    case UInt8(ascii: "P"): 0b11110_10001_10001_11110_10000_10000_10000
    case UInt8(ascii: "Q"): 0b01110_10001_10001_10001_10101_10010_01101
    case UInt8(ascii: "R"): 0b11110_10001_10001_11110_10100_10010_10001
    case UInt8(ascii: "S"): 0b01111_10000_10000_01110_00001_00001_11110
    case UInt8(ascii: "T"): 0b11111_00100_00100_00100_00100_00100_00100
    case UInt8(ascii: "U"): 0b10001_10001_10001_10001_10001_10001_01110
    case UInt8(ascii: "V"): 0b10001_10001_10001_10001_10001_01010_00100
    case UInt8(ascii: "W"): 0b10001_10001_10001_10101_10101_10101_01010
    case UInt8(ascii: "X"): 0b10001_10001_01010_00100_01010_10001_10001
    case UInt8(ascii: "Y"): 0b10001_10001_10001_01010_00100_00100_00100
    case UInt8(ascii: "Z"): 0b11111_00001_00010_00100_01000_10000_11111
    case UInt8(ascii: "a"): 0b00000_00000_01110_00001_01111_10001_01111
    case UInt8(ascii: "b"): 0b10000_10000_10110_11001_10001_10001_11110
    case UInt8(ascii: "c"): 0b00000_00000_01110_10000_10000_10001_01110
    case UInt8(ascii: "d"): 0b00001_00001_01101_10011_10001_10001_01111
    case UInt8(ascii: "e"): 0b00000_00000_01110_10001_11111_10000_01110
    case UInt8(ascii: "f"): 0b00110_01001_01000_11100_01000_01000_01000
    case UInt8(ascii: "g"): 0b00000_01111_10001_10001_01111_00001_01110
    case UInt8(ascii: "h"): 0b10000_10000_10110_11001_10001_10001_10001
    case UInt8(ascii: "i"): 0b00100_00000_01100_00100_00100_00100_01110
    case UInt8(ascii: "j"): 0b00010_00000_00110_00010_00010_10010_01100
    case UInt8(ascii: "k"): 0b10000_10000_10010_10100_11000_10100_10010
    case UInt8(ascii: "l"): 0b01100_00100_00100_00100_00100_00100_01110
    case UInt8(ascii: "m"): 0b00000_00000_11010_10101_10101_10101_10101
    case UInt8(ascii: "n"): 0b00000_00000_10110_11001_10001_10001_10001
    case UInt8(ascii: "o"): 0b00000_00000_01110_10001_10001_10001_01110
    case UInt8(ascii: "p"): 0b00000_00000_11110_10001_11110_10000_10000
    case UInt8(ascii: "q"): 0b00000_00000_01101_10011_01111_00001_00001
    case UInt8(ascii: "r"): 0b00000_00000_10110_11001_10000_10000_10000
    case UInt8(ascii: "s"): 0b00000_00000_01111_10000_01110_00001_11110
    case UInt8(ascii: "t"): 0b01000_01000_11100_01000_01000_01001_00110
    case UInt8(ascii: "u"): 0b00000_00000_10001_10001_10001_10011_01101
    case UInt8(ascii: "v"): 0b00000_00000_10001_10001_10001_01010_00100
    case UInt8(ascii: "w"): 0b00000_00000_10001_10001_10101_10101_01010
    case UInt8(ascii: "x"): 0b00000_00000_10001_01010_00100_01010_10001
    case UInt8(ascii: "y"): 0b00000_00000_10001_10001_01111_00001_01110
    case UInt8(ascii: "z"): 0b00000_00000_11111_00010_00100_01000_11111
    default: 0
    }
  }
}
