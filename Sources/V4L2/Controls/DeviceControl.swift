// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

/// A control as described by its driver: type, range and flags.
///
/// The driver's data may be inconsistent, such as a minimum above the maximum or a step of 0.
package struct DeviceControl: Hashable, Sendable {
  /// The type of a control's value: `V4L2_CTRL_TYPE_…`.
  package enum Kind: Hashable, Sendable {
    case integer
    case boolean
    /// A choice of named items.
    case menu
    /// A button: writing the control triggers an action. It has no value.
    case button
    case integer64
    /// A class heading, without a value.
    case heading
    case text
    /// A set of flag bits.
    case bitmask
    /// A choice of numeric items.
    case integerMenu
    case unsigned8
    case unsigned16
    case unsigned32
    /// A width and a height.
    case area
    case rectangle
    /// An unknown compound type, with its number `V4L2_CTRL_TYPE_…`.
    case other(UInt32)

    init(_ type: UInt32) {
      switch type {
      case V4L2_CTRL_TYPE_INTEGER.rawValue: self = .integer
      case V4L2_CTRL_TYPE_BOOLEAN.rawValue: self = .boolean
      case V4L2_CTRL_TYPE_MENU.rawValue: self = .menu
      case V4L2_CTRL_TYPE_BUTTON.rawValue: self = .button
      case V4L2_CTRL_TYPE_INTEGER64.rawValue: self = .integer64
      case V4L2_CTRL_TYPE_CTRL_CLASS.rawValue: self = .heading
      case V4L2_CTRL_TYPE_STRING.rawValue: self = .text
      case V4L2_CTRL_TYPE_BITMASK.rawValue: self = .bitmask
      case V4L2_CTRL_TYPE_INTEGER_MENU.rawValue: self = .integerMenu
      case V4L2_CTRL_TYPE_U8.rawValue: self = .unsigned8
      case V4L2_CTRL_TYPE_U16.rawValue: self = .unsigned16
      case V4L2_CTRL_TYPE_U32.rawValue: self = .unsigned32
      case V4L2_CTRL_TYPE_AREA.rawValue: self = .area
      case UInt32(CVideo4Linux_CTRL_TYPE_RECT): self = .rectangle
      default: self = .other(type)
      }
    }

    /// Whether the value is a single number.
    package var isNumber: Bool {
      switch self {
      case .integer, .boolean, .menu, .integer64, .bitmask, .integerMenu: true
      default: false
      }
    }

    /// Whether the control has menu items.
    package var isMenu: Bool { self == .menu || self == .integerMenu }
  }

  /// The current state of a control: `V4L2_CTRL_FLAG_…`.
  package struct Flags: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The control is permanently disabled and must be ignored.
    package static let disabled = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_DISABLED))
    /// The control is temporarily locked by another program or by streaming.
    package static let grabbed = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_GRABBED))
    package static let readOnly = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_READ_ONLY))
    package static let writeOnly = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_WRITE_ONLY))
    /// A change of this control may change other controls.
    package static let update = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_UPDATE))
    /// Setting the control currently has no effect, usually because an automatic mode is on.
    package static let inactive = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_INACTIVE))
    package static let slider = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_SLIDER))
    /// The hardware may change the value at any time.
    package static let volatile = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_VOLATILE))
    /// The value is a string, a structure or an array.
    package static let hasPayload = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_HAS_PAYLOAD))
    /// Setting the current value again also triggers an action.
    package static let executeOnWrite = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_EXECUTE_ON_WRITE))
    /// A change of this control may change the buffer layout.
    package static let modifiesLayout = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_MODIFY_LAYOUT))
    /// The value is an array whose number of elements varies.
    package static let dynamicArray = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_DYNAMIC_ARRAY))
  }

  /// A menu item.
  package struct MenuItem: Hashable, Sendable {
    /// The control value that selects the item.
    package let index: Int64
    /// The item's name, or its number as text.
    package let name: String
    /// The item's number in an integer menu.
    ///
    /// Nil for an item of another menu.
    package let number: Int64?

    package init(index: Int64, name: String, number: Int64? = nil) {
      (self.index, self.name, self.number) = (index, name, number)
    }
  }

  package let id: ControlID
  /// The driver's display name, such as `Exposure Time, Absolute`.
  package let name: String
  package let kind: Kind
  /// The minimum value.
  ///
  /// For strings, the minimum length in bytes.
  package let minimum: Int64
  /// The maximum value.
  ///
  /// For strings, the maximum length in bytes. For bitmasks, all valid bits.
  package let maximum: Int64
  /// The step between values.
  ///
  /// Some drivers report 0.
  package let step: Int64
  /// The driver's default value.
  package let defaultValue: Int64
  package let flags: Flags
  /// The menu items.
  ///
  /// Their indices may have gaps.
  package var menu: [MenuItem]
  /// The size of one element of the value, in bytes.
  package let elementSize: Int
  /// The number of elements.
  ///
  /// 1 unless the control is an array.
  package let elementCount: Int
  /// The number of elements in each dimension of an array.
  ///
  /// Empty for a single element.
  package let dimensions: [Int]

  package init(
    id: ControlID, name: String, kind: Kind, minimum: Int64 = 0, maximum: Int64 = 0,
    step: Int64 = 1, defaultValue: Int64 = 0, flags: Flags = [], menu: [MenuItem] = [],
    elementSize: Int = 4, elementCount: Int = 1, dimensions: [Int] = []
  ) {
    (self.id, self.name, self.kind, self.minimum, self.maximum) = (id, name, kind, minimum, maximum)
    (self.step, self.defaultValue, self.flags, self.menu) = (step, defaultValue, flags, menu)
    (self.elementSize, self.elementCount, self.dimensions) = (elementSize, elementCount, dimensions)
  }

  /// The name in v4l2-ctl spelling: `exposure_time_absolute`.
  package var spelledName: String {
    var spelled = ""
    var isGap = false
    for byte in name.utf8 {
      let letter = UnicodeScalar(byte)
      guard letter.isASCIILetterOrDigit else {
        isGap = !spelled.isEmpty
        continue
      }
      if isGap { spelled.append("_") }
      isGap = false
      spelled.append(contentsOf: String(letter).lowercased())
    }
    return spelled
  }

  /// Whether the control can be set in general.
  ///
  /// A writable control may still be inactive now.
  package var isWritable: Bool { flags.isDisjoint(with: [.disabled, .readOnly]) }

  /// Whether the value is a number rather than an array or a structure.
  package var holdsNumber: Bool { kind.isNumber && !flags.contains(.hasPayload) }

  /// The value nearest to a number that the control can be set to.
  ///
  /// - Parameter value: Any number.
  /// - Returns: The nearest value in the range that is a whole number of steps from the minimum.
  ///   For a menu with gaps, the nearest item. If the driver's range is invalid, `value` itself.
  package func nearestValue(to value: Int64) -> Int64 {
    func isNearer(_ left: MenuItem, _ right: MenuItem) -> Bool {
      left.distance(to: value) < right.distance(to: value)
    }
    if kind.isMenu, let nearest = menu.min(by: isNearer) { return nearest.index }
    guard minimum <= maximum, kind != .bitmask else { return value }
    let inside = Swift.min(Swift.max(value, minimum), maximum)
    guard step > 1 else { return inside }
    // The difference of two 64-bit numbers may need more than 64 bits.
    let (whole, rest) = (Int128(inside) - Int128(minimum)).quotientAndRemainder(
      dividingBy: Int128(step))
    let below = Int128(minimum) + whole * Int128(step)
    let above = below + Int128(step)
    let goesUp = rest * 2 >= Int128(step) && above <= Int128(maximum)
    return Int64(clamping: goesUp ? above : below)
  }
}

extension DeviceControl.MenuItem {
  /// The distance of the item from a value.
  fileprivate func distance(to value: Int64) -> UInt128 {
    (Int128(index) - Int128(value)).magnitude
  }
}

extension UnicodeScalar {
  /// Whether the character is an ASCII letter or digit, independent of the locale.
  fileprivate var isASCIILetterOrDigit: Bool {
    switch self {
    case "a"..."z", "A"..."Z", "0"..."9": true
    default: false
    }
  }
}
