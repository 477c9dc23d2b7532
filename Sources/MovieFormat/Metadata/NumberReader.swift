// SPDX-License-Identifier: Apache-2.0

/// A reader of the numbers that ``NumberWriter`` wrote; each call returns nil for bytes that it did not
/// write.
struct NumberReader {
  private let bytes: ArraySlice<UInt8>
  private var position: Int

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  /// Whether all bytes were read.
  var isAtEnd: Bool { position == bytes.endIndex }

  /// The number of bytes that were not read, which limits how many numbers they can hold.
  var remaining: Int { bytes.endIndex - position }

  mutating func next() -> UInt64? {
    var number: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      guard position < bytes.endIndex else { return nil }
      let byte = bytes[position]
      position += 1
      // The tenth byte has one bit.
      guard shift < 63 || byte <= 1 else { return nil }
      number |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte & 0x80 == 0 { return number }
    }
    return nil
  }

  mutating func nextSigned() -> Int64? {
    next().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
  }

  mutating func nextCount(upTo limit: Int) -> Int? {
    next().flatMap { Int(exactly: $0) }.flatMap { $0 <= limit ? $0 : nil }
  }

  mutating func nextBytes(_ count: Int) -> [UInt8]? {
    guard count <= remaining else { return nil }
    defer { position += count }
    return Array(bytes[position..<position + count])
  }

  /// Reads a list of exactly `count` numbers.
  mutating func nextList(count: Int) -> [Int64]? {
    var list: [Int64] = []
    list.reserveCapacity(count)
    while list.count < count {
      guard let head = next(), let length = Int(exactly: head >> 1), length > 0,
        length <= count - list.count
      else { return nil }
      if head & 1 == 1 {
        guard let distance = nextCount(upTo: list.count), distance > 0 else { return nil }
        for _ in 0..<length { list.append(list[list.count - distance]) }
      } else {
        guard length <= remaining else { return nil }
        for _ in 0..<length {
          guard let number = nextSigned() else { return nil }
          list.append(number)
        }
      }
    }
    return list
  }
}
