// SPDX-License-Identifier: Apache-2.0

extension VideoDevice {
  /// The handles that the parts of this program share.
  package var handles: SharedHandles { handle.calls.handles }

  /// Shares the handle by which this program captures from a node; nil if it does not.
  package init?(capturingAt path: String) {
    guard let handle = DeviceSystem.calls.handles.capturing(path) else { return nil }
    self.init(handle)
  }

  /// Whether this is the handle by which this program captures from the device.
  package var isCapturing: Bool { handles.capturing(path) === handle }

  /// Calls a closure with the handle that holds the lock, or with this one if there is no lock.
  package borrowing func withSettings<Result>(
    _ body: (borrowing VideoDevice) throws(DeviceError) -> Result
  ) throws(DeviceError) -> Result {
    if let holder = handle.calls.handles.holder(of: path) { return try body(VideoDevice(holder)) }
    return try body(self)
  }

  /// Locks the device against changes through other handles: `VIDIOC_S_PRIORITY` with
  /// `V4L2_PRIORITY_RECORD`.
  ///
  /// - Throws: ``DeviceError`` for `.setPriority`: `.busy` if the device is locked already.
  package borrowing func lockSettings() throws(DeviceError) -> SettingsLock {
    try SettingsLock(handle)
  }

  /// Ends the lock, but keeps its priority for as long as the device captures.
  package borrowing func keepSettings() { handle.keepSettings() }

  /// Sets a control until this program ends its capture from the device, or permanently if it does
  /// not capture.
  ///
  /// - Returns: The value that the driver says it took.
  /// - Throws: ``DeviceError`` for `.readControl` and `.setControl`.
  @discardableResult
  package borrowing func setDuringCapture(
    _ control: DeviceControl, to value: ControlValue
  ) throws(DeviceError) -> ControlValue {
    guard let capturing = handle.calls.handles.capturing(path) else {
      return try set(control, to: value)
    }
    return try capturing.change(control, to: value, through: handle)
  }
}

/// A lock on the settings of a device, released with this value.
package struct SettingsLock: ~Copyable, Sendable {
  private let handle: DeviceHandle

  fileprivate init(_ handle: DeviceHandle) throws(DeviceError) {
    try handle.lock()
    self.handle = handle
  }

  deinit {
    // A lost device has no priorities.
    try? handle.unlock()
  }

  /// Releases the lock, unless the device keeps its priority.
  ///
  /// - Throws: ``DeviceError`` for `.setPriority`.
  package borrowing func unlock() throws(DeviceError) { try handle.unlock() }
}
