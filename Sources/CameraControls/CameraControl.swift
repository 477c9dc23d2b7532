// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankRaster
import OvercrankV4L2

/// A V4L2 control of a camera: its description and its value when it was read.
///
/// Use this type to list controls, and to read or set controls that have no property in
/// ``CameraControls``. Control names are spelled as v4l2-ctl spells them.
public struct CameraControl: Hashable, Sendable, Identifiable {
  /// The data type of a control, after `enum v4l2_ctrl_type`.
  ///
  /// The raw value is the kind as v4l2-ctl prints it.
  public enum Kind: String, Hashable, Sendable {
    case integer = "int"
    /// A switch: 0 or 1.
    case boolean = "bool"
    /// A menu of named items. The value is the index of an item.
    case menu
    /// A menu of numbers. The value is the index of an item, not its number.
    case integerMenu = "intmenu"
    /// A button: setting it triggers an action. It has no value.
    case button
    case integer64 = "int64"
    case text = "str"
    /// A set of bits.
    case bitmask
    case unsigned8 = "u8"
    case unsigned16 = "u16"
    case unsigned32 = "u32"
    case area
    case rectangle = "rect"
    /// A data structure that only the driver defines.
    case unknown

    /// The kind as v4l2-ctl prints it, such as `int`, `intmenu` or `u8`.
    public var v4l2Name: String { rawValue }
  }

  /// The value of a control.
  public enum Value: Hashable, Sendable {
    case number(Int64)
    case text(String)
    /// The elements of an array, or the width and height of an area.
    case numbers([Int64])
    /// A rectangle on the sensor, in sensor pixels.
    case rectangle(left: Int64, top: Int64, width: Int64, height: Int64)
  }

  /// An item of a menu.
  public struct MenuItem: Hashable, Sendable {
    /// The control's value that selects this item.
    public let index: Int64
    /// The item's name, or its number as text for an integer menu.
    public let name: String
  }

  /// The control's V4L2 number, `V4L2_CID_…`.
  public let id: UInt32
  /// The name that sets the control, such as `exposure_time_absolute`.
  public let name: String
  /// The driver's human-readable name, such as `Exposure Time, Absolute`.
  public let title: String
  /// The control's data type.
  public let kind: Kind
  /// The smallest value, or nil where the control has no range.
  ///
  /// For text controls, the smallest number of bytes.
  public let minimum: Int64?
  /// The greatest value, or nil where the control has no range.
  ///
  /// For text controls, the greatest number of bytes.
  public let maximum: Int64?
  /// The distance between neighboring values, or nil where the control has no range.
  public let step: Int64?
  /// The driver's default value, or nil where the value is not a number.
  public let defaultValue: Int64?
  /// The menu items of a menu control.
  ///
  /// Their indices may have gaps.
  public let menu: [MenuItem]
  /// The value when the control was read, or nil if the control has no readable value.
  public let value: Value?
  /// The control's current flags as v4l2-ctl prints them: `inactive`, `read-only`, `volatile`.
  public let flags: [String]
  /// The unit of the value, such as `100 µs`, or nil where V4L2 defines none.
  public let unit: String?

  /// The value as a time, or nil where the control's unit is not a time.
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
    flags = control.flags.names
    unit = control.id.unit
    value =
      switch held {
      case .number(let number): .number(number)
      case .text(let text): .text(text)
      case .numbers(let numbers): .numbers(numbers)
      case .rectangle(let area):
        .rectangle(
          left: Int64(area.x), top: Int64(area.y), width: Int64(area.width),
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
  /// Whether V4L2 defines this type only as an array, so that the range applies to each element.
  fileprivate var isArrayOnly: Bool {
    self == .unsigned8 || self == .unsigned16 || self == .unsigned32
  }
}

extension DeviceControl.Flags {
  /// The names of the flags as v4l2-ctl prints them.
  fileprivate var names: [String] {
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
  /// The unit that V4L2 defines for the control's value, or nil.
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
}

extension CameraControls {
  /// Lists the camera's controls with their current values.
  ///
  /// The list includes the controls of the camera's LED, even if the LED has a separate device
  /// node. Control classes and permanently disabled controls are left out. If the camera fails to
  /// return a value, that control's value is nil.
  ///
  /// - Returns: The controls, or an empty array for a device without controls.
  /// - Throws: `MediaError` with `.deviceLost`, `.deviceFailed`.
  public func list() throws(MediaError) -> [CameraControl] {
    try described().map { control throws(MediaError) in try read(control) }
  }

  /// The driver's descriptions of all controls that can be read or set, including those of the LED.
  func described() throws(MediaError) -> [DeviceControl] {
    guard let node = camera.ownNode else { return [] }
    var all = try node.use { device throws(CallFailure) in try device.controls() }
    // If the LED fails, the controls of the camera are still listed.
    if let led = camera.led,
      let its = try? led.use({ device throws(CallFailure) in try device.controls() })
    {
      all.removeAll(where: \.id.isOfLED)
      all += its.filter(\.id.isOfLED)
    }
    return all.filter { $0.kind != .heading && !$0.flags.contains(.disabled) }
  }

  private func read(_ control: DeviceControl) throws(MediaError) -> CameraControl {
    do throws(MediaError) {
      let held = try camera.node(for: control.id)?
        .use { device throws(CallFailure) in try device.value(of: control) }
      return CameraControl(control, held ?? nil)
    } catch  where error.code == .deviceLost {
      throw error
    } catch {
      // If one control cannot be read, the other controls are still listed.
      return CameraControl(control, nil)
    }
  }
}
