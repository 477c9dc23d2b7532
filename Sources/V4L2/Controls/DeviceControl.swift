// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

/// A control as its driver describes it: what it is, and what it may be set to.
///
/// It is the driver's word, which may be nonsense: a minimum above the maximum, a step of zero.
package struct DeviceControl: Hashable, Sendable {
  /// What a control holds.
  package enum Kind: Hashable, Sendable {
    case integer
    case boolean
    /// One of named items.
    case menu
    /// Does something when it is written; it holds nothing.
    case button
    case integer64
    /// A headline over others; it holds nothing.
    case heading
    case text
    /// A set of bits.
    case bitmask
    /// One of items that are numbers.
    case integerMenu
    case unsigned8
    case unsigned16
    case unsigned32
    /// A width and a height.
    case area
    case rectangle
    /// A structure of the driver's, by its `V4L2_CTRL_TYPE_…`.
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

    /// Whether one number is the whole value.
    package var isNumber: Bool {
      switch self {
      case .integer, .boolean, .menu, .integer64, .bitmask, .integerMenu: true
      default: false
      }
    }

    /// Whether there is a list of items to choose from.
    package var isMenu: Bool { self == .menu || self == .integerMenu }
  }

  /// What may be done with a control just now: `V4L2_CTRL_FLAG_…`.
  package struct Flags: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Gone for good; to be passed over.
    package static let disabled = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_DISABLED))
    /// Taken by another program, or fixed while the device streams.
    package static let grabbed = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_GRABBED))
    package static let readOnly = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_READ_ONLY))
    package static let writeOnly = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_WRITE_ONLY))
    /// Changing this one changes others.
    package static let update = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_UPDATE))
    /// Without effect just now, most often because an automatic decides.
    package static let inactive = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_INACTIVE))
    package static let slider = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_SLIDER))
    /// Changes by itself.
    package static let volatile = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_VOLATILE))
    /// The value does not fit a number: it is text, a structure or an array.
    package static let hasPayload = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_HAS_PAYLOAD))
    /// Writing the value it has does something, too.
    package static let executeOnWrite = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_EXECUTE_ON_WRITE))
    /// Changing this one may change the format of the frames.
    package static let modifiesLayout = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_MODIFY_LAYOUT))
    /// How many elements there are changes.
    package static let dynamicArray = Flags(rawValue: UInt32(V4L2_CTRL_FLAG_DYNAMIC_ARRAY))
  }

  /// An item of a menu.
  package struct MenuItem: Hashable, Sendable {
    /// The value that chooses it.
    package let index: Int64
    /// Its name, or its number as text.
    package let name: String
    /// Its number, in menus of numbers.
    package let number: Int64?

    package init(index: Int64, name: String, number: Int64? = nil) {
      self.index = index
      self.name = name
      self.number = number
    }
  }

  package let id: ControlID
  /// The driver's name for people: `Exposure Time, Absolute`.
  package let name: String
  package let kind: Kind
  /// The least value; of text the least number of bytes.
  package let minimum: Int64
  /// The greatest value; of text the greatest number of bytes; of a bitmask all bits it has.
  package let maximum: Int64
  /// From one value to the next; 0 where the driver says so.
  package let step: Int64
  /// The value after the driver was loaded.
  package let defaultValue: Int64
  package let flags: Flags
  /// The items there are; a menu may have holes.
  package var menu: [MenuItem]
  /// Bytes of an element.
  package let elementSize: Int
  /// How many elements the value has; 1 unless it is an array.
  package let elementCount: Int
  /// The sides of an array; empty for one element.
  package let dimensions: [Int]

  package init(
    id: ControlID, name: String, kind: Kind, minimum: Int64 = 0, maximum: Int64 = 0,
    step: Int64 = 1, defaultValue: Int64 = 0, flags: Flags = [], menu: [MenuItem] = [],
    elementSize: Int = 4, elementCount: Int = 1, dimensions: [Int] = []
  ) {
    self.id = id
    self.name = name
    self.kind = kind
    self.minimum = minimum
    self.maximum = maximum
    self.step = step
    self.defaultValue = defaultValue
    self.flags = flags
    self.menu = menu
    self.elementSize = elementSize
    self.elementCount = elementCount
    self.dimensions = dimensions
  }

  /// The name as v4l2-ctl spells it: `exposure_time_absolute`.
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

  /// Whether the control can be set at all, be it inactive now or not.
  package var isWritable: Bool { flags.isDisjoint(with: [.disabled, .readOnly]) }

  /// Whether the value is a number and not an array or a structure of them.
  package var holdsNumber: Bool { kind.isNumber && !flags.contains(.hasPayload) }

  /// The value nearest to a wish that the control can hold.
  ///
  /// - Parameter value: Any number.
  /// - Returns: A whole number of steps from the minimum, within the range; the item nearest to
  ///   it in a menu with holes; the wish where the driver's range is none.
  package func nearestValue(to value: Int64) -> Int64 {
    func isNearer(_ left: MenuItem, _ right: MenuItem) -> Bool {
      left.distance(to: value) < right.distance(to: value)
    }
    if kind.isMenu, let nearest = menu.min(by: isNearer) { return nearest.index }
    guard minimum <= maximum, kind != .bitmask else { return value }
    let inside = Swift.min(Swift.max(value, minimum), maximum)
    guard step > 1 else { return inside }
    // 128 bits: minimum and maximum may be the ends of 64.
    let (whole, rest) = (Int128(inside) - Int128(minimum)).quotientAndRemainder(
      dividingBy: Int128(step))
    let below = Int128(minimum) + whole * Int128(step)
    let above = below + Int128(step)
    let goesUp = rest * 2 >= Int128(step) && above <= Int128(maximum)
    return Int64(clamping: goesUp ? above : below)
  }
}

extension DeviceControl.MenuItem {
  /// How far the item is from a wished value.
  fileprivate func distance(to value: Int64) -> UInt128 {
    (Int128(index) - Int128(value)).magnitude
  }
}

extension UnicodeScalar {
  /// Whether C's `isalnum` has it in every locale.
  fileprivate var isASCIILetterOrDigit: Bool {
    switch self {
    case "a"..."z", "A"..."Z", "0"..."9": true
    default: false
    }
  }
}
