// SPDX-License-Identifier: Apache-2.0

/// Characters of 5 by 7 dots: the digits, and the letters and signs of the scene.
enum DotFont {
  static let width = 5
  static let height = 7

  /// The character for the last decimal digit of a number.
  static func digit(_ number: Int) -> UInt8 { UInt8(ascii: "0") + UInt8(number % 10) }

  /// The dots of one line of a character, as five bits.
  ///
  /// The highest bit is the leftmost dot.
  ///
  /// An unknown character has no dots. The dots are in a `switch`, not in a global table. A global
  /// is initialized at its first use, so each access would take a lock that the real-time threads
  /// of several cameras share.
  static func dots(of character: UInt8, line: Int) -> UInt64 {
    let lines: UInt64 =
      switch character {
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
      case UInt8(ascii: "."): 0b00000_00000_00000_00000_00000_01100_01100
      case UInt8(ascii: ":"): 0b00000_01100_01100_00000_01100_01100_00000
      case UInt8(ascii: "="): 0b00000_00000_11111_00000_11111_00000_00000
      case UInt8(ascii: "h"): 0b10000_10000_10110_11001_10001_10001_10001
      case UInt8(ascii: "m"): 0b00000_00000_11010_10101_10101_10101_10101
      case UInt8(ascii: "s"): 0b00000_00000_01111_10000_01110_00001_11110
      case UInt8(ascii: "T"): 0b11111_00100_00100_00100_00100_00100_00100
      default: 0
      }
    return lines >> UInt64(width * (height - 1 - line)) & 0b11111
  }
}
