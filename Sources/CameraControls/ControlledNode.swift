// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankV4L2

/// An open device node, shared by the objects that control the device.
final class ControlledNode: Sendable {
  private let device: VideoDevice

  /// The path of the node.
  var path: String { device.path }
  /// The handles of device nodes that the parts of this program share.
  var handles: SharedHandles { device.handles }

  init(_ path: String) throws(MediaError) {
    device = try CallStage.capturing.converting { () throws(CallFailure) in
      try VideoDevice(opening: path)
    }
  }

  /// Opens the same node a second time, to get a handle with a separate queue of control events.
  init(reopening node: ControlledNode) throws(MediaError) {
    device = try CallStage.capturing.converting { () throws(CallFailure) in
      try VideoDevice(reopening: node.device)
    }
  }

  /// Opens the first LED of the device that this user may open, or returns nil if there is none.
  func led() -> ControlledNode? {
    for path in device.leds() {
      guard let part = try? VideoDevice(openingSubdevice: path, of: device),
        (try? part.control(.flashMode)) != nil
      else { continue }
      return ControlledNode(part)
    }
    return nil
  }

  private init(_ device: consuming VideoDevice) { self.device = device }

  /// Calls a closure with the device and converts its errors to `MediaError`.
  ///
  /// If this program has locked the device, the closure gets the handle that holds the lock.
  func use<Result>(
    _ body: (borrowing VideoDevice) throws(CallFailure) -> Result
  ) throws(MediaError) -> Result {
    try CallStage.capturing.converting { () throws(CallFailure) in try device.withSettings(body) }
  }

  /// Sets a control.
  ///
  /// If this program captures from the device, the previous value is restored when the capture
  /// ends. Otherwise the new value stays set.
  func setDuringCapture(_ control: DeviceControl, to value: ControlValue) throws(MediaError) {
    _ = try use { device throws(CallFailure) in try device.setDuringCapture(control, to: value) }
  }

  /// Calls a closure with the handle that belongs to this object alone.
  ///
  /// No other object reads the events of this handle.
  func useOwn<Result>(
    _ body: (borrowing VideoDevice) throws(CallFailure) -> Result
  ) throws(MediaError) -> Result {
    try CallStage.capturing.converting { () throws(CallFailure) in try body(device) }
  }
}
