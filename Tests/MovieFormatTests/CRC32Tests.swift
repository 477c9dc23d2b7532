// SPDX-License-Identifier: Apache-2.0

import OvercrankMovieFormat
import TestSupport
import Testing

struct CRC32Tests {
  /// Computes the checksum as the standard defines it, one bit at a time.
  private static func bitwise(_ bytes: [UInt8]) -> UInt32 {
    var sum = UInt32.max
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
    return ~sum
  }

  @Test func `CRC-32 of the text 123456789 is the standard check value`() {
    let digits = Array("123456789".utf8)
    #expect(digits.withUnsafeBytes { CRC32.checksum(of: $0) } == 0xCBF4_3926)
  }

  @Test func `CRC-32 by tables equals CRC-32 computed bit by bit`() {
    var random = SeededGenerator(seed: 32)
    for count in 0..<200 {
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      #expect(bytes.withUnsafeBytes { CRC32.checksum(of: $0) } == Self.bitwise(bytes), "\(count)")
    }
  }
}
