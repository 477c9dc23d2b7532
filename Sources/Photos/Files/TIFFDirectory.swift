// SPDX-License-Identifier: Apache-2.0

/// The value of a TIFF field, which is stored in big-endian order.
enum TIFFValue: Equatable {
  case bytes([UInt8])
  case ascii(String)
  case short(UInt16)
  case shorts([UInt16])
  case long(UInt32)
  /// Fractions, as alternating numerators and denominators.
  case rationals([UInt32])
  case signedRational(Int32, Int32)
  /// Signed fractions, as alternating numerators and denominators.
  case signedRationals([Int32])
  case undefined([UInt8])

  /// The number that TIFF assigns to the type of the value.
  fileprivate var type: UInt16 {
    switch self {
    case .bytes: 1
    case .ascii: 2
    case .short, .shorts: 3
    case .long: 4
    case .rationals: 5
    case .undefined: 7
    case .signedRational, .signedRationals: 10
    }
  }

  fileprivate var count: Int {
    switch self {
    case .bytes(let bytes), .undefined(let bytes): bytes.count
    case .ascii: data.count
    case .short, .long, .signedRational: 1
    case .shorts(let numbers): numbers.count
    case .rationals(let numbers): numbers.count / 2
    case .signedRationals(let numbers): numbers.count / 2
    }
  }

  fileprivate var data: [UInt8] {
    switch self {
    case .bytes(let bytes), .undefined(let bytes): bytes
    case .ascii(let text): Array(text.utf8) + [0]
    case .short(let number): number.bigEndianBytes
    case .shorts(let numbers): numbers.flatMap(\.bigEndianBytes)
    case .long(let number): number.bigEndianBytes
    case .rationals(let numbers): numbers.flatMap(\.bigEndianBytes)
    case .signedRationals(let numbers): numbers.flatMap(\.bigEndianBytes)
    case .signedRational(let above, let below): above.bigEndianBytes + below.bigEndianBytes
    }
  }
}

/// A directory of TIFF fields (image file directory, IFD).
struct TIFFDirectory {
  /// The fields of the directory by TIFF tag.
  var fields: [UInt16: TIFFValue] = [:]

  /// The size in bytes of the directory and its values.
  var byteCount: Int {
    tableSize + fields.values.reduce(0) { $0 + Self.outside($1.data).count }
  }

  /// Returns the bytes of the directory.
  ///
  /// - Parameters:
  ///   - offset: The offset of the directory in the TIFF structure.
  ///   - next: The offset of the next directory, or 0.
  /// - Returns: The table of fields, followed by the values that do not fit in the table.
  func bytes(at offset: Int, next: Int) -> [UInt8] {
    var table = UInt16(fields.count).bigEndianBytes
    var values: [UInt8] = []
    for (tag, value) in fields.sorted(by: { $0.key < $1.key }) {
      let data = value.data
      table += tag.bigEndianBytes + value.type.bigEndianBytes
      table += UInt32(value.count).bigEndianBytes
      let far = Self.outside(data)
      if far.isEmpty {
        table += data + [UInt8](repeating: 0, count: 4 - data.count)
      } else {
        table += UInt32(offset + tableSize + values.count).bigEndianBytes
        values += far
      }
    }
    return table + UInt32(next).bigEndianBytes + values
  }

  private var tableSize: Int { 2 + 12 * fields.count + 4 }

  /// The bytes that are stored after the table for a value that does not fit in it.
  ///
  /// A padding byte is added if their number is odd.
  private static func outside(_ data: [UInt8]) -> [UInt8] {
    data.count <= 4 ? [] : data.count % 2 == 0 ? data : data + [0]
  }
}

extension FixedWidthInteger {
  fileprivate var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }
}
