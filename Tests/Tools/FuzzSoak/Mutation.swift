// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// Damages bytes and texts, in the same way for the same seed.
struct Mutation {
  var random: SeededGenerator

  private static let numbers: [UInt32] = [
    0, 1, 2, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0xFFFF, 0x1_0000, 0x7FFF_FFF0, 600, 240_000,
  ]

  /// Damages a movie at one to eight positions, most of them in its index.
  mutating func movie(_ whole: [UInt8], index: Range<Int>) -> [UInt8] {
    var bytes = whole
    for _ in 0..<Int.random(in: 1...8, using: &random) {
      guard bytes.count > 16 else { break }
      let inIndex = Int.random(in: 0..<5, using: &random) > 0
      let range = inIndex ? index.clamped(to: 0..<bytes.count - 8) : 0..<bytes.count - 8
      guard !range.isEmpty else { continue }
      let position = Int.random(in: range, using: &random)
      switch Int.random(in: 0..<16, using: &random) {
      case 0..<5: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 5..<8: bytes[position] = .random(in: 0...255, using: &random)
      case 8..<13:
        let number = Self.numbers.randomElement(using: &random) ?? 0
        for byte in 0..<4 { bytes[position + byte] = UInt8(number >> (24 - 8 * byte) & 0xFF) }
      case 13: bytes.removeSubrange(position..<min(bytes.count, position + 4))
      case 14:
        let length = Int.random(in: 1...64, using: &random)
        bytes.insert(
          contentsOf: bytes[position..<min(bytes.count, position + length)], at: position)
      default: if Int.random(in: 0..<4, using: &random) == 0 { bytes.removeSubrange(position...) }
      }
    }
    return bytes
  }

  private static let values = [
    "0", "-1", "1e300", "-1e300", "9223372036854775807", "-9223372036854775808", "1e-300", "null",
    "true", "[]", "{}", "\"\"", "0.1", "99999999999999999999", "340282366920938463463374607431768",
    "\"1/0\"", "\"-7/3\"", "\"170141183460469231731687303715884105727/2\"", "<integer>-1</integer>",
  ]

  /// Replaces numbers in a text, or damages its characters.
  mutating func text(_ whole: String) -> String {
    var text = Array(whole)
    for _ in 0..<Int.random(in: 1...6, using: &random) {
      guard text.count > 8 else { break }
      let position = Int.random(in: 0..<text.count - 4, using: &random)
      switch Int.random(in: 0..<8, using: &random) {
      case 0..<5:
        // The next number or word is replaced as a whole.
        guard let start = text[position...].firstIndex(where: { $0.isNumber || $0 == "-" }) else {
          continue
        }
        let end = text[start...].firstIndex { !$0.isNumber && !".-+e/".contains($0) } ?? start
        guard start < end else { continue }
        let word = Self.values.randomElement(using: &random) ?? "0"
        text.replaceSubrange(start..<end, with: Array(word))
      case 5:
        text[position] =
          ["{", "}", "[", "]", ",", "\"", "\\", "<", "\u{0}"]
          .randomElement(using: &random) ?? "0"
      case 6: text.removeSubrange(position..<min(text.count, position + 20))
      default:
        let end = min(text.count, position + Int.random(in: 1...200, using: &random))
        text.insert(contentsOf: text[position..<end], at: position)
      }
    }
    return String(text)
  }
}
