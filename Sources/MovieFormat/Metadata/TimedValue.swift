// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// A metadata value with its key and its time in a movie.
package struct TimedValue: Hashable, Sendable {
  /// The time of the value, in ticks of the first track.
  package var ticks: Int64
  package var key: String
  package var value: MetadataValue

  /// The key whose value marks the frame of a Live Photo's still image.
  package static let stillImageTime = "com.apple.quicktime.still-image-time"

  package init(ticks: Int64, key: String, value: MetadataValue) {
    (self.ticks, self.key, self.value) = (ticks, key, value)
  }
}

extension TimedValue {
  /// The type of a value, as it is stored in a growing movie.
  private enum Kind: UInt8 { case text = 1, integer, number }

  /// Encodes values as a growing movie stores them, while its keys are not yet known.
  package static func encode(_ values: [TimedValue]) -> [UInt8] {
    var bytes = BoxBytes()
    for value in values {
      let (kind, data): (Kind, [UInt8]) =
        switch value.value {
        case .text(let text): (.text, Array(text.utf8))
        case .integer: (.integer, value.value.bytes)
        case .number: (.number, value.value.bytes)
        }
      bytes.append(value.ticks)
      bytes.append(kind.rawValue)
      bytes.append(UInt32(clamping: value.key.utf8.count))
      bytes.append(bytes: Array(value.key.utf8))
      bytes.append(UInt32(clamping: data.count))
      bytes.append(bytes: data)
    }
    return bytes.bytes
  }

  /// Decodes metadata values, up to the first malformed one.
  package static func decode(_ bytes: [UInt8]) -> [TimedValue] {
    var values: [TimedValue] = []
    var rest = bytes[...]
    func take(_ count: Int) -> ArraySlice<UInt8>? {
      guard count <= rest.count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }
    while let ticks = take(8), let kind = take(1)?.first.flatMap(Kind.init),
      let keyCount = take(4).map({ Int(Box.number($0)) }), let key = take(keyCount),
      let dataCount = take(4).map({ Int(Box.number($0)) }), let data = take(dataCount)
    {
      let number = Box.number(data.prefix(8))
      let value: MetadataValue =
        switch kind {
        case .text: .text(String(decoding: data, as: UTF8.self))
        case .integer: .integer(Int64(bitPattern: number))
        case .number: .number(Double(bitPattern: number))
        }
      values.append(
        TimedValue(
          ticks: Int64(bitPattern: Box.number(ticks)), key: String(decoding: key, as: UTF8.self),
          value: value))
    }
    return values
  }
}

extension MetadataValue {
  /// The bytes of the value in an `mebx` sample.
  var bytes: [UInt8] {
    var bytes = BoxBytes()
    switch self {
    case .text(let text): bytes.append(bytes: Array(text.utf8))
    case .integer(let number): bytes.append(number)
    case .number(let number): bytes.append(number.bitPattern)
    }
    return bytes.bytes
  }

  /// The well-known type of the value (QuickTime File Format, "Well-known types").
  var typeIndicator: UInt32 {
    switch self {
    case .text: 1  // UTF-8
    case .integer: 74  // a signed 64-bit number
    case .number: 24  // a 64-bit float
    }
  }

  /// Creates a value from its bytes and well-known type.
  ///
  /// The bytes of an unsupported type become hexadecimal text.
  init(_ bytes: ArraySlice<UInt8>, ofType type: UInt32) {
    let number = Box.number(bytes.prefix(8))
    switch (type, bytes.count) {
    case (1, _): self = .text(String(decoding: bytes, as: UTF8.self))
    case (2, _):
      let units = stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2)
        .map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
      self = .text(String(decoding: units, as: UTF16.self))
    case (21, 1), (65, 1): self = .integer(Int64(Int8(truncatingIfNeeded: number)))
    case (21, 2), (66, 2): self = .integer(Int64(Int16(truncatingIfNeeded: number)))
    case (21, 4), (67, 4): self = .integer(Int64(Int32(truncatingIfNeeded: number)))
    case (21, 8), (74, 8): self = .integer(Int64(bitPattern: number))
    case (22, 1...4), (75, 1), (76, 2), (77, 4): self = .integer(Int64(number))
    case (22, 8), (78, 8): self = .integer(Int64(clamping: number))
    case (23, 4): self = .number(Double(Float(bitPattern: UInt32(number))))
    case (24, 8): self = .number(Double(bitPattern: number))
    default:
      let digits = bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
      self = .text("0x" + digits.joined())
    }
  }
}
