// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankV4L2

/// A setting of a camera as its driver has it: what it is, what it takes, what it holds.
///
/// For settings that ``CameraControls`` has no property for, and for lists. Names are spelled as
/// v4l2-ctl does.
public struct CameraControl: Hashable, Sendable, Identifiable {
  /// What sort of value a control holds.
  public enum Kind: Hashable, Sendable {
    case integer
    /// Zero or one.
    case boolean
    /// One of named items, by number.
    case menu
    /// One of items that are numbers, by their place in the list.
    case integerMenu
    /// Does something when it is set, and holds nothing.
    case button
    case integer64
    case text
    /// A set of bits.
    case bitmask
    case unsigned8
    case unsigned16
    case unsigned32
    case area
    case rectangle
    /// A structure of the driver's.
    case unknown

    /// The kind in v4l2-ctl's word: `int`, `intmenu`, `u8`.
    public var v4l2Name: String {
      switch self {
      case .integer: "int"
      case .boolean: "bool"
      case .menu: "menu"
      case .integerMenu: "intmenu"
      case .button: "button"
      case .integer64: "int64"
      case .text: "str"
      case .bitmask: "bitmask"
      case .unsigned8: "u8"
      case .unsigned16: "u16"
      case .unsigned32: "u32"
      case .area: "area"
      case .rectangle: "rect"
      case .unknown: "unknown"
      }
    }
  }

  /// What a control holds.
  public enum Value: Hashable, Sendable {
    case number(Int64)
    case text(String)
    /// The elements of an array; the width and height of an area.
    case numbers([Int64])
    /// A part of the sensor, in its pixels.
    case rectangle(left: Int64, top: Int64, width: Int64, height: Int64)
  }

  /// An item of a menu.
  public struct MenuItem: Hashable, Sendable {
    /// The value that chooses it.
    public let index: Int64
    /// Its name, or its number as text.
    public let name: String
  }

  /// The driver's number for it, `V4L2_CID_…`.
  public let id: UInt32
  /// The name by which it is set: `exposure_time_absolute`.
  public let name: String
  /// The driver's name for people: `Exposure Time, Absolute`.
  public let title: String
  /// What sort of value it holds.
  public let kind: Kind
  /// The least value; of text the least number of bytes; nil where there is no range.
  public let minimum: Int64?
  /// The greatest value; of text the greatest number of bytes; nil where there is no range.
  public let maximum: Int64?
  /// From one value to the next; nil where there is no range.
  public let step: Int64?
  /// What it held when the driver was loaded; nil where that is no number.
  public let defaultValue: Int64?
  /// The items there are; a menu may have holes.
  public let menu: [MenuItem]
  /// What it holds, or nil where it holds nothing that can be read.
  public let value: Value?
  /// What may be done with it now, in v4l2-ctl's words: `inactive`, `read-only`, `volatile`.
  public let flags: [String]
  /// What its number counts, such as `100 µs`; nil where that is the driver's affair.
  public let unit: String?

  /// The time it holds, of controls whose unit is one.
  public var time: MediaTime? {
    guard case .number(let number) = value else { return nil }
    return ControlID(rawValue: id).time(of: number)
  }
}

extension CameraControl {
  init(_ control: DeviceControl, _ held: ControlValue?) {
    id = control.id.rawValue
    name = control.spelledName
    title = control.name
    kind = Kind(control.kind)
    let hasRange = control.kind.isNumber || control.kind == .text || control.kind.isArrayOnly
    minimum = hasRange ? control.minimum : nil
    maximum = hasRange ? control.maximum : nil
    step = hasRange ? control.step : nil
    defaultValue = control.kind.isNumber || control.kind.isArrayOnly ? control.defaultValue : nil
    menu = control.menu.map { MenuItem(index: $0.index, name: $0.name) }
    flags = control.flags.words
    unit = control.id.unit
    value =
      switch held {
      case .number(let number): .number(number)
      case .text(let text): .text(text)
      case .numbers(let numbers): .numbers(numbers)
      case .rectangle(let area):
        .rectangle(
          left: Int64(area.left), top: Int64(area.top), width: Int64(area.width),
          height: Int64(area.height))
      case .bytes, nil: nil
      }
  }
}

extension CameraControl.Kind {
  fileprivate init(_ kind: DeviceControl.Kind) {
    self =
      switch kind {
      case .integer: .integer
      case .boolean: .boolean
      case .menu: .menu
      case .integerMenu: .integerMenu
      case .button: .button
      case .integer64: .integer64
      case .text: .text
      case .bitmask: .bitmask
      case .unsigned8: .unsigned8
      case .unsigned16: .unsigned16
      case .unsigned32: .unsigned32
      case .area: .area
      case .rectangle: .rectangle
      case .heading, .other: .unknown
      }
  }
}

extension DeviceControl.Kind {
  /// Whether it is a number that only arrays have, with a range for each element.
  fileprivate var isArrayOnly: Bool {
    self == .unsigned8 || self == .unsigned16 || self == .unsigned32
  }
}

extension DeviceControl.Flags {
  /// The flags in v4l2-ctl's words.
  fileprivate var words: [String] {
    let names: [(DeviceControl.Flags, String)] = [
      (.grabbed, "grabbed"), (.readOnly, "read-only"), (.update, "update"),
      (.inactive, "inactive"), (.slider, "slider"), (.writeOnly, "write-only"),
      (.volatile, "volatile"), (.hasPayload, "has-payload"),
      (.executeOnWrite, "execute-on-write"), (.modifiesLayout, "modify-layout"),
      (.dynamicArray, "dynamic-array"),
    ]
    return names.filter { contains($0.0) }.map(\.1)
  }
}

extension ControlID {
  /// What the control's number counts, where V4L2 says so.
  var unit: String? {
    switch self {
    case .exposureTime: "100 µs"
    case .exposureBias: "EV/1000"
    case .isoSensitivity: "ISO/1000"
    case .whiteBalanceTemperature: "K"
    case .flashIntensity, .torchIntensity: "mA"
    case .flashTimeout: "µs"
    case .rotation, .sensorRotation: "degrees"
    case .pan, .tilt: "arc seconds"
    case .pixelRate: "pixels/s"
    case .horizontalBlanking: "pixels"
    case .verticalBlanking: "lines"
    default: nil
    }
  }

  /// Units a second, of controls whose number is a time.
  var timescale: Int32? {
    switch self {
    case .exposureTime: CameraControls.exposureTimescale
    case .flashTimeout: 1_000_000
    default: nil
    }
  }

  /// The time that a number of the control's means, or nil where it means none.
  func time(of number: Int64) -> MediaTime? {
    guard let timescale else { return nil }
    return MediaTime(number, over: timescale)
  }
}

extension CameraControls {
  /// The camera's controls as its driver lists them, with what they hold.
  ///
  /// Those of its LED are among them, also where that has a node of its own. Headlines and
  /// controls that are switched off for good are left out. A value that the camera
  /// fails to give is nil.
  ///
  /// - Returns: The controls; none of a device that has none.
  /// - Throws: `MediaError` with `.deviceLost`, `.deviceFailed`.
  public func list() throws(MediaError) -> [CameraControl] {
    try described().map { control throws(MediaError) in try read(control) }
  }

  /// The controls that can be read or set, as the driver describes them.
  func described() throws(MediaError) -> [DeviceControl] {
    guard let node else { return [] }
    var all = try node.use { device throws(DeviceError) in try device.controls() }
    // An LED that fails must not hide what the camera has.
    if let led,
      let its = try? led.use({ device throws(DeviceError) in try device.controls() })
    {
      all.removeAll(where: \.id.isOfLED)
      all += its.filter(\.id.isOfLED)
    }
    return all.filter { $0.kind != .heading && !$0.flags.contains(.disabled) }
  }

  private func read(_ control: DeviceControl) throws(MediaError) -> CameraControl {
    do throws(MediaError) {
      let held = try node(for: control.id)?
        .use { device throws(DeviceError) in try device.value(of: control) }
      return CameraControl(control, held ?? nil)
    } catch  where error.code == .deviceLost {
      throw error
    } catch {
      // One control that a camera stumbles over must not hide the others.
      return CameraControl(control, nil)
    }
  }
}
