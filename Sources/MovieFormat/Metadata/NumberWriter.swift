// SPDX-License-Identifier: Apache-2.0

/// A writer of whole numbers of varying length.
///
/// A number takes a byte for each 7 bits. A list of numbers that repeat in any pattern takes a few
/// bytes in all, because a run that occurred before is stored as its distance and length.
struct NumberWriter {
  private(set) var bytes: [UInt8] = []

  /// The greatest distance of a repeated run.
  private static let reach = 24
  /// The shortest repeated run that is stored as such.
  private static let shortestRun = 4

  mutating func append(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  /// Appends a signed number; small magnitudes are short (zigzag).
  mutating func append(_ number: Int64) {
    append(UInt64(bitPattern: (number << 1) ^ (number >> 63)))
  }

  mutating func append(bytes more: [UInt8]) { bytes += more }

  /// Appends a list of numbers without its length.
  ///
  /// It consists of runs. The lowest bit of a run's head is 1 for a repeated run, and the rest is
  /// its length. A repeated run may overlap what it repeats.
  mutating func append(list: [Int64]) {
    var (literal, position) = (0, 0)
    func flush(_ writer: inout NumberWriter) {
      guard literal < position else { return }
      writer.append(UInt64(position - literal) << 1)
      for number in list[literal..<position] { writer.append(number) }
    }
    while position < list.count {
      var best = (length: 0, distance: 0)
      for distance in 1...Self.reach where distance <= position {
        var end = position
        while end < list.count, list[end] == list[end - distance] { end += 1 }
        if end - position > best.length { best = (end - position, distance) }
      }
      guard best.length >= min(Self.shortestRun, list.count - position) else {
        position += 1
        continue
      }
      flush(&self)
      append(UInt64(best.length) << 1 | 1)
      append(UInt64(best.distance))
      position += best.length
      literal = position
    }
    flush(&self)
  }
}

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
