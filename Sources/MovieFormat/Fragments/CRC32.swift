// SPDX-License-Identifier: Apache-2.0

/// The CRC-32 of Ethernet and PNG (ISO/IEC 3309), computed with tables for eight bytes at a time.
package enum CRC32 {
  /// Table n contains, for each value of a byte, the remainder of that byte followed by n zero
  /// bytes.
  private static let tables: [UInt32] = {
    var tables: [UInt32] = []
    for byte in 0..<UInt32(256) {
      tables.append((0..<8).reduce(byte) { sum, _ in sum >> 1 ^ (sum & 1) * 0xEDB8_8320 })
    }
    for index in 256..<8 * 256 {
      let before = tables[index - 256]
      tables.append(before >> 8 ^ tables[Int(before & 0xFF)])
    }
    return tables
  }()

  /// The checksum of a byte buffer.
  package static func checksum(of bytes: UnsafeRawBufferPointer) -> UInt32 {
    tables.withUnsafeBufferPointer { tables in
      var sum = UInt32.max
      var index = 0
      while index + 8 <= bytes.count {
        let word =
          UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
          ^ UInt64(sum)
        sum = 0
        for byte in 0..<8 { sum ^= tables[(7 - byte) << 8 | Int(word >> (8 * byte) & 0xFF)] }
        index += 8
      }
      for byte in bytes[index...] { sum = sum >> 8 ^ tables[Int((sum ^ UInt32(byte)) & 0xFF)] }
      return ~sum
    }
  }
}
