// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// A camera whose controls can be read and set by their V4L2 numbers, with its LED.
final class ControlledCamera: Sendable {
  /// The open device, or nil for a device without controls.
  private let node: ControlledNode?
  /// The device's name in error messages.
  let deviceName: String
  /// The LED's own node.
  ///
  /// The outer nil means that the node was not searched for yet, the inner nil that no such node
  /// exists.
  private let ownLED = Mutex<ControlledNode??>(nil)

  init(_ device: CaptureDevice) throws(MediaError) {
    deviceName = device.address
    if case .v4l2(let path) = device.source {
      node = try ControlledNode(path)
    } else {
      node = nil
    }
  }

  init(path: String) throws(MediaError) {
    deviceName = path
    node = try ControlledNode(path)
  }

  /// The camera's own node, or nil for a device without controls.
  var ownNode: ControlledNode? { node }

  /// The node that has a control.
  ///
  /// An LED control belongs to the LED's separate node, if there is one. All other controls belong
  /// to the camera's node.
  func node(for id: ControlID) -> ControlledNode? { id.isOfLED ? led ?? node : node }

  /// The LED's own node, or nil if the camera's node has the LED controls or the camera has no LED.
  var led: ControlledNode? {
    ownLED.withLock { known in
      if let led = known { return led }
      // If the camera cannot be queried now, nothing is stored, and the next call searches again.
      guard let node, let hasLED = try? node.use(Self.hasLED) else { return nil }
      let led = hasLED ? nil : node.led()
      known = .some(led)
      return led
    }
  }

  /// Whether the camera's own node has LED controls.
  private static func hasLED(_ device: borrowing VideoDevice) throws(CallFailure) -> Bool {
    try device.control(.flashMode) != nil
  }

  /// The description of a control, or nil if the device lacks it.
  func find(_ id: ControlID) throws(MediaError) -> DeviceControl? {
    guard let node = node(for: id) else { return nil }
    return try node.use { device throws(CallFailure) in try device.control(id) }
  }

  /// The description of a control.
  ///
  /// Throws if the device lacks the control.
  func require(_ id: ControlID) throws(MediaError) -> DeviceControl {
    guard let control = try find(id) else { throw missing(id.wellKnownName) }
    return control
  }

  /// Whether the device has a control.
  ///
  /// False if the device is lost.
  func has(_ id: ControlID) -> Bool { (try? find(id)) != nil }

  /// The value of a control as a number, or nil if the device lacks the control.
  func number(_ id: ControlID) throws(MediaError) -> Int64? {
    guard let control = try find(id) else { return nil }
    return try value(control).number
  }

  /// The value of a control, or zero for a control without a value.
  func value(_ control: DeviceControl) throws(MediaError) -> ControlValue {
    guard let node = node(for: control.id) else { return .number(0) }
    let value = try node.use { device throws(CallFailure) in try device.value(of: control) }
    return value ?? .number(0)
  }

  /// Sets a control and returns the value that the driver chose.
  ///
  /// Throws if the device lacks the control.
  @discardableResult
  func set(_ id: ControlID, _ number: Int64) throws(MediaError) -> Int64 {
    try set(require(id), number)
  }

  /// Sets a control and returns the value that the driver chose.
  @discardableResult
  func set(_ control: DeviceControl, _ number: Int64) throws(MediaError) -> Int64 {
    guard let node = node(for: control.id) else { throw missing(control.spelledName) }
    let granted = try node.use { device throws(CallFailure) in
      try device.set(control, to: .number(number))
    }
    return granted.number ?? number
  }

  /// Sets a control if the device has it.
  func setIfPresent(_ id: ControlID, _ number: Int64) throws(MediaError) {
    if let control = try find(id) { try set(control, number) }
  }

  /// The error for a control that the device lacks.
  func missing(_ what: String) -> MediaError {
    MediaError(
      .controlNotSupported, "\(deviceName) has no \(what)",
      recovery: Recovery("choose a control that it has", .listControls(device: deviceName)))
  }

  /// The error for a value outside the control's range.
  func outOfRange(_ what: String, _ value: String, takes range: String) -> MediaError {
    MediaError(
      .controlOutOfRange, "\(what) of \(deviceName) cannot be \(value)",
      recovery: "choose \(range)")
  }
}
