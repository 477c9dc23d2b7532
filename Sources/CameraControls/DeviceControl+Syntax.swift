// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2

extension DeviceControl {
  /// Parses a value for this control and checks its range, step and menu.
  ///
  /// - Parameters:
  ///   - text: The value in the syntax of ``ControlAssignment``.
  ///   - device: The device's name in error messages.
  /// - Returns: A value that the control supports.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  func value(parsing text: String, of device: String) throws(MediaError) -> ControlValue {
    /// The error for an invalid value.
    func refused(_ recovery: Recovery) -> MediaError {
      MediaError(
        .controlOutOfRange, "\(spelledName) of \(device) cannot be \"\(text)\"", recovery: recovery)
    }
    switch kind {
    case .button: return .number(0)
    case .text:
      guard !text.utf8.contains(0), Int64(text.utf8.count) <= maximum,
        Int64(text.utf8.count) >= minimum
      else { throw refused("write text of \(minimum) to \(maximum) bytes") }
      return .text(text)
    case .rectangle:
      guard let rectangle = PixelRect(parsing: text) else {
        throw refused("write WIDTHxHEIGHT+LEFT+TOP, such as 640x480+0+0")
      }
      return .rectangle(rectangle)
    case .heading, .other: throw refused("set it with the driver's own program")
    case .area, .unsigned8, .unsigned16, .unsigned32: return try elements(text, refused)
    case .integer, .boolean, .menu, .integer64, .bitmask, .integerMenu:
      guard holdsNumber else { return try elements(text, refused) }
      if text == "default" { return .number(defaultValue) }
      guard let number = try number(text, refused) else { throw refused(advice) }
      return .number(number)
    }
  }

  /// Advice that lists the values the control supports.
  private var advice: Recovery {
    switch kind {
    case .boolean: return "write on or off"
    case .menu, .integerMenu:
      let items = menu.map { "\($0.index) (\($0.name))" }
      return "choose \(items.joined(separator: ", "))"
    case .bitmask: return "choose a number with the bits 0x\(String(maximum, radix: 16))"
    default:
      let steps = step > 1 ? " in steps of \(step)" : ""
      guard let least = id.time(of: minimum), let greatest = id.time(of: maximum) else {
        return "choose \(minimum) to \(maximum)\(steps)"
      }
      return Recovery(
        "choose \(minimum) to \(maximum)\(steps), \(least.secondsText) s to "
          + "\(greatest.secondsText) s")
    }
  }

  private func number(
    _ text: String, _ refused: (Recovery) -> MediaError
  ) throws(MediaError) -> Int64? {
    if kind == .boolean, let isOn = Self.flag(text) { return isOn ? 1 : 0 }
    if kind.isMenu {
      // An item's name may look like a number. A number is therefore compared with the indices of
      // the items before it is compared with their names.
      let index = Int64(literal: text)
      let lowered = text.lowercased()
      return menu.first { $0.index == index }?.index
        ?? menu.first { $0.name.lowercased() == lowered }?.index
    }
    let literal = Int64(literal: text)
    guard let number = try literal == nil ? units(text, refused) : literal else { return nil }
    if kind == .bitmask { return number & ~maximum == 0 ? number : nil }
    guard minimum <= number, number <= maximum else { return nil }
    guard step > 1 else { return number }
    let rest = (Int128(number) - Int128(minimum)) % Int128(step)
    if rest == 0 { return number }
    let below = Int128(number) - rest
    let above = below + Int128(step)
    throw refused(
      above > Int128(maximum)
        ? "choose \(below), the nearest value"
        : "choose \(below) or \(above), the nearest values")
  }

  /// Parses a time and converts it to the control's unit.
  ///
  /// Returns nil if the control's unit is not a time, or the text is not a time.
  private func units(
    _ text: String, _ refused: (Recovery) -> MediaError
  ) throws(MediaError) -> Int64? {
    // A bare number is a value in the control's own unit, but `MediaTime` would parse it as
    // seconds. Only a text with a unit suffix is therefore parsed as a time.
    guard let timescale = id.timescale, let last = text.unicodeScalars.last,
      last.properties.isAlphabetic, let time = try? MediaTime(parsing: text),
      let below = try? time.converted(to: timescale, rounding: .towardNegativeInfinity),
      let above = try? time.converted(to: timescale, rounding: .towardPositiveInfinity)
    else { return nil }
    guard below != above else { return below.value }
    let nearest = [below, above].filter { minimum <= $0.value && $0.value <= maximum }
    guard !nearest.isEmpty else { return nil }
    let names = nearest.map { "\($0.secondsText)s (\($0.value))" }
    throw refused(
      "it counts \(id.unit ?? "units"); the nearest is \(names.joined(separator: " or "))")
  }

  private func elements(
    _ text: String, _ refused: (Recovery) -> MediaError
  ) throws(MediaError) -> ControlValue {
    let numbers = text.split(separator: ",", omittingEmptySubsequences: false)
      .map { Int64(literal: String($0)) }
    let count = kind == .area ? 2 : elementCount
    var values: [Int64] = []
    for case .some(let number) in numbers
    where kind == .area || minimum...max(minimum, maximum) ~= number {
      values.append(number)
    }
    let isDynamic = flags.contains(.dynamicArray) && values.count <= count
    guard values.count == numbers.count, values.count == count || isDynamic else {
      throw refused("write \(count) numbers from \(minimum) to \(maximum), such as 1,2,3")
    }
    return .numbers(values)
  }

  private static func flag(_ text: String) -> Bool? {
    switch text.lowercased() {
    case "1", "on", "true", "yes": true
    case "0", "off", "false", "no": false
    default: nil
    }
  }
}

extension Int64 {
  /// Parses a number such as `40`, `-3` or `0x1f`.
  fileprivate init?(literal text: String) {
    let isHexadecimal = text.hasPrefix("0x") || text.hasPrefix("0X")
    self.init(isHexadecimal ? String(text.dropFirst(2)) : text, radix: isHexadecimal ? 16 : 10)
  }
}

extension PixelRect {
  /// Parses a rectangle such as `640x480+0+0`.
  fileprivate init?(parsing text: String) {
    let parts = text.split(separator: "+", omittingEmptySubsequences: false)
    guard parts.count == 3, let left = Int32(parts[1]), let top = Int32(parts[2]) else {
      return nil
    }
    let sides = parts[0].split(separator: "x", omittingEmptySubsequences: false)
    guard sides.count == 2, let width = UInt32(sides[0]), let height = UInt32(sides[1]) else {
      return nil
    }
    self.init(x: Int(left), y: Int(top), width: Int(width), height: Int(height))
  }
}
