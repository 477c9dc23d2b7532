// SPDX-License-Identifier: Apache-2.0

/// Reads Exp-Golomb codes, which are the variable-length numbers of H.264.
///
/// See Rec. ITU-T H.264, 9.1.
package struct ExpGolombReader<Bytes: RandomAccessCollection<UInt8>> where Bytes.Index == Int {
  private let bytes: Bytes
  private var offset: Int

  /// Creates a reader that starts at the first bit of the byte at `index`.
  package init(_ bytes: Bytes, at index: Int) {
    self.bytes = bytes
    offset = index * 8
  }

  /// Reads the next number.
  ///
  /// Returns nil at the end of the bytes, or if the number is 2^25 or more.
  package mutating func number() -> Int? {
    var zeros = 0
    while let next = bit(), next == 0 {
      zeros += 1
      if zeros > 24 { return nil }
    }
    var value = 1
    for _ in 0..<zeros {
      guard let next = bit() else { return nil }
      value = value << 1 | next
    }
    return offset > bytes.endIndex * 8 ? nil : value - 1
  }

  private mutating func bit() -> Int? {
    defer { offset += 1 }
    guard offset / 8 < bytes.endIndex else { return nil }
    return Int(bytes[offset / 8] >> (7 - UInt8(offset % 8))) & 1
  }
}
