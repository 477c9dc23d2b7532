// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import OvercrankLinuxSystem
package import OvercrankRaster

/// The value of a control.
package enum ControlValue: Hashable, Sendable {
  /// The number of an integer, a boolean or a bitmask, or the index of a menu's item.
  case number(Int64)
  case text(String)
  /// A rectangle in sensor pixels.
  case rectangle(PixelRect)
  /// The elements of an array, or the width and height of an area.
  case numbers([Int64])
  /// The raw bytes of an unknown compound type.
  case bytes([UInt8])

  /// The number, or nil if the value is not a single number.
  package var number: Int64? {
    guard case .number(let number) = self else { return nil }
    return number
  }

  /// Creates a value from memory that the driver filled.
  init(_ memory: UnsafeRawBufferPointer, of control: DeviceControl) {
    /// Reads the memory as integers of one type. An incomplete integer at the end is ignored.
    func elements<Number: FixedWidthInteger>(_: Number.Type) -> ControlValue {
      let size = MemoryLayout<Number>.size
      return .numbers(
        (0..<memory.count / size).map {
          Int64(memory.loadUnaligned(fromByteOffset: $0 * size, as: Number.self))
        })
    }
    switch control.kind {
    case .text: self = .text(SystemFiles.text(memory))
    case .rectangle where memory.count >= MemoryLayout<v4l2_rect>.size && control.elementCount == 1:
      self = .rectangle(PixelRect(memory.loadUnaligned(as: v4l2_rect.self)))
    case .unsigned8: self = elements(UInt8.self)
    case .unsigned16: self = elements(UInt16.self)
    case .unsigned32, .area: self = elements(UInt32.self)
    case .integer64: self = elements(Int64.self)
    case .integer, .boolean, .menu, .bitmask, .integerMenu: self = elements(Int32.self)
    default: self = .bytes(Array(memory))
    }
  }

  /// The bytes to pass to the driver to set a control to this value, or nil if the value does not
  /// suit the control.
  func payload(of control: DeviceControl) -> [UInt8]? {
    /// Writes the numbers as integers of one type. Returns nil if a number does not fit.
    func bytes<Number: FixedWidthInteger>(_ numbers: [Int64], _: Number.Type) -> [UInt8]? {
      var bytes: [UInt8] = []
      for number in numbers {
        guard let number = Number(exactly: number) else { return nil }
        withUnsafeBytes(of: number) { bytes.append(contentsOf: $0) }
      }
      return bytes
    }
    switch (self, control.kind) {
    case (.text(let text), .text):
      // The string must not contain a null byte, because the driver would end the string there.
      guard !text.utf8.contains(0), Int64(text.utf8.count) <= control.maximum else { return nil }
      return Array(text.utf8) + [0]
    case (.rectangle(let value), .rectangle):
      return withUnsafeBytes(of: v4l2_rect(value)) { Array($0) }
    case (.numbers(let numbers), .unsigned8): return bytes(numbers, UInt8.self)
    case (.numbers(let numbers), .unsigned16): return bytes(numbers, UInt16.self)
    case (.numbers(let numbers), .unsigned32), (.numbers(let numbers), .area):
      return bytes(numbers, UInt32.self)
    case (.numbers(let numbers), .integer64): return bytes(numbers, Int64.self)
    case (.numbers(let numbers), let kind) where kind.isNumber: return bytes(numbers, Int32.self)
    case (.bytes(let bytes), .other): return bytes
    default: return nil
    }
  }
}
