// SPDX-License-Identifier: Apache-2.0

/// The values of Apple's binary property lists, as far as edits of photos and films use them.
///
/// Format: CFBinaryPList.c of Apple's open-source CoreFoundation. A list is damaged or hostile
/// until it has been read: every offset, count and depth is checked.
enum PropertyListValue: Hashable, Sendable {
  case bool(Bool)
  case integer(Int64)
  case real(Double)
  case string(String)
  case array([PropertyListValue])
  case dictionary([String: PropertyListValue])
  /// Data, dates and identifiers, which nobody here looks into.
  case other

  subscript(key: String) -> PropertyListValue? {
    guard case .dictionary(let members) = self else { return nil }
    return members[key]
  }

  var elements: [PropertyListValue] {
    guard case .array(let elements) = self else { return [] }
    return elements
  }

  var integer: Int64? {
    guard case .integer(let number) = self else { return nil }
    return number
  }

  var number: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .real(let number) where number.isFinite: number
    default: nil
    }
  }

  /// Reads a list; nil for bytes that are none.
  init?(binary bytes: [UInt8]) {
    guard let reader = BinaryPropertyListReader(bytes) else { return nil }
    var budget = 10_000
    guard let value = reader.value(reader.root, depth: 0, &budget) else { return nil }
    self = value
  }
}

private struct BinaryPropertyListReader {
  let root: Int
  private let bytes: [UInt8]
  private let offsetSize: Int
  private let referenceSize: Int
  private let count: Int
  private let table: Int

  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 40, bytes.starts(with: "bplist00".utf8) else { return nil }
    self.bytes = bytes
    let trailer = bytes.count - 32
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      let count = Self.number(bytes, trailer + 8, 8),
      let root = Self.number(bytes, trailer + 16, 8),
      let table = Self.number(bytes, trailer + 24, 8), count > 0, root < count, table < trailer,
      count <= (trailer - table) / offsetSize
    else { return nil }
    (self.count, self.root, self.table) = (count, root, table)
  }

  /// A whole number, the highest byte first; nil outside the bytes or above 2^62.
  private static func number(_ bytes: [UInt8], _ offset: Int, _ size: Int) -> Int? {
    guard offset >= 0, size <= bytes.count, offset <= bytes.count - size else { return nil }
    var number: UInt64 = 0
    for byte in bytes[offset..<offset + size] { number = number << 8 | UInt64(byte) }
    return number < 1 << 62 ? Int(number) : nil
  }

  func value(_ index: Int, depth: Int, _ budget: inout Int) -> PropertyListValue? {
    budget -= 1
    guard index < count, depth < 16, budget > 0,
      let offset = Self.number(bytes, table + index * offsetSize, offsetSize), offset >= 8,
      offset < table
    else { return nil }
    let (kind, low) = (bytes[offset] >> 4, Int(bytes[offset] & 15))
    switch kind {
    case 0: return low == 8 ? .bool(false) : low == 9 ? .bool(true) : .other
    case 1: return integer(offset + 1, low)
    case 2: return real(offset + 1, low)
    case 5, 6:
      guard let (count, start) = length(offset, low) else { return nil }
      return text(start, count, isWide: kind == 6).map { .string($0) }
    case 10, 12:
      guard let (count, start) = length(offset, low) else { return nil }
      var elements: [PropertyListValue] = []
      for number in 0..<count {
        guard let element = member(start, number, depth, &budget) else { return nil }
        elements.append(element)
      }
      return .array(elements)
    case 13:
      guard let (count, start) = length(offset, low) else { return nil }
      var members: [String: PropertyListValue] = [:]
      for number in 0..<count {
        guard case .string(let key)? = member(start, number, depth, &budget),
          let value = member(start, count + number, depth, &budget)
        else { return nil }
        members[key] = value
      }
      return .dictionary(members)
    default: return .other
    }
  }

  private func member(
    _ start: Int, _ number: Int, _ depth: Int, _ budget: inout Int
  ) -> PropertyListValue? {
    guard
      let reference = Self.number(bytes, start + number * referenceSize, referenceSize)
    else { return nil }
    return value(reference, depth: depth + 1, &budget)
  }

  /// A count and where what it counts begins.
  private func length(_ offset: Int, _ low: Int) -> (count: Int, start: Int)? {
    guard low == 15 else { return (low, offset + 1) }
    guard offset + 1 < bytes.count, bytes[offset + 1] >> 4 == 1 else { return nil }
    let size = 1 << Int(bytes[offset + 1] & 15)
    guard size <= 8, let count = Self.number(bytes, offset + 2, size), count <= bytes.count else {
      return nil
    }
    return (count, offset + 2 + size)
  }

  private func integer(_ offset: Int, _ low: Int) -> PropertyListValue? {
    // Of 16 bytes the lower half holds what fits a number here.
    let size = 1 << low
    guard size <= 16, offset <= bytes.count - size else { return nil }
    var number: UInt64 = 0
    for byte in bytes[(offset + max(0, size - 8))..<offset + size] {
      number = number << 8 | UInt64(byte)
    }
    return .integer(Int64(bitPattern: number))
  }

  private func real(_ offset: Int, _ low: Int) -> PropertyListValue? {
    guard low == 2 || low == 3, offset <= bytes.count - (1 << low) else { return nil }
    var number: UInt64 = 0
    for byte in bytes[offset..<offset + (1 << low)] { number = number << 8 | UInt64(byte) }
    return .real(
      low == 2 ? Double(Float(bitPattern: UInt32(number))) : Double(bitPattern: number))
  }

  private func text(_ start: Int, _ count: Int, isWide: Bool) -> String? {
    let size = isWide ? count * 2 : count
    guard size <= bytes.count, start <= bytes.count - size else { return nil }
    let part = bytes[start..<start + size]
    guard isWide else { return String(decoding: part, as: UTF8.self) }
    let units = stride(from: part.startIndex, to: part.endIndex, by: 2).map {
      UInt16(part[$0]) << 8 | UInt16(part[$0 + 1])
    }
    return String(decoding: units, as: UTF16.self)
  }
}
