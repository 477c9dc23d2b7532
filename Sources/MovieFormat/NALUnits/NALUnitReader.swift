// SPDX-License-Identifier: Apache-2.0

/// Iterates over the NAL units of an H.264 or HEVC packet.
package struct NALUnitReader {
  private let bytes: UnsafeRawBufferPointer
  private let lengthSize: Int?
  private var position = 0

  /// Creates a reader for a packet.
  ///
  /// - Parameters:
  ///   - bytes: The packet, which must stay valid while the reader is used.
  ///   - lengthSize: The size of each NAL unit's length prefix in bytes; nil for a byte stream with
  ///     start codes.
  package init(_ bytes: UnsafeRawBufferPointer, lengthSize: Int?) {
    self.bytes = bytes
    self.lengthSize = lengthSize
  }

  /// The byte range of the next NAL unit, beginning with its header byte.
  ///
  /// Nil at the end.
  ///
  /// If the stated length of a NAL unit exceeds the packet, the range ends at the end of the
  /// packet.
  package mutating func next() -> Range<Int>? {
    guard let lengthSize else {
      let unit = AnnexB.nextUnit(of: bytes, from: position)
      position = unit?.upperBound ?? bytes.count
      return unit
    }
    guard position < bytes.count - lengthSize else { return nil }
    let length = bytes[position..<position + lengthSize].reduce(0) { $0 << 8 | Int($1) }
    let start = position + lengthSize
    position = min(bytes.count, start + length)
    return start..<max(start + 1, position)
  }
}

/// Reads bits and Exp-Golomb codes, which are the variable-length numbers of H.264 and HEVC.
///
/// See Rec. ITU-T H.264, 9.1.
package struct ExpGolombReader<Bytes: RandomAccessCollection<UInt8>> where Bytes.Index == Int {
  private let bytes: Bytes
  /// The position of the next bit from the start of the bytes.
  private(set) var offset: Int

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

  /// Reads a number of up to 32 bits.
  ///
  /// Returns nil at the end of the bytes.
  mutating func bits(_ count: Int) -> Int? {
    var value = 0
    for _ in 0..<count {
      guard let next = bit() else { return nil }
      value = value << 1 | next
    }
    return value
  }

  /// Skips bits; returns false if the bytes end before them.
  mutating func skip(_ count: Int) -> Bool {
    offset += count
    return offset <= bytes.endIndex * 8
  }

  private mutating func bit() -> Int? {
    defer { offset += 1 }
    guard offset / 8 < bytes.endIndex else { return nil }
    return Int(bytes[offset / 8] >> (7 - UInt8(offset % 8))) & 1
  }
}
