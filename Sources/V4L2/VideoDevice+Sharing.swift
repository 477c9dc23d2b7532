// SPDX-License-Identifier: Apache-2.0

extension VideoDevice {
  /// The handles of device nodes that the parts of this program share.
  package var handles: SharedHandles { handle.calls.handles }

  /// Shares the handle by which this program captures from a node, or returns nil if it does not
  /// capture from the node.
  package init?(capturingAt path: String) {
    guard let handle = DeviceSystem.calls.handles.capturing(path) else { return nil }
    self.init(handle)
  }

  /// Whether this is the handle by which this program captures from the device.
  package var isCapturing: Bool { handles.capturing(path) === handle }

  /// Calls a closure with a handle through which settings can be changed.
  ///
  /// This is the handle of this program that holds the lock on the settings, because the driver
  /// rejects changes through any other handle. If this program holds no lock on the device, it is
  /// this value's own handle.
  package borrowing func withSettings<Result>(
    _ body: (borrowing VideoDevice) throws(DeviceError) -> Result
  ) throws(DeviceError) -> Result {
    if let holder = handle.calls.handles.holder(of: path) { return try body(VideoDevice(holder)) }
    return try body(self)
  }

  /// Locks the device against changes through other handles: `VIDIOC_S_PRIORITY` with
  /// `V4L2_PRIORITY_RECORD`.
  ///
  /// - Throws: ``DeviceError`` with the operation `.setPriority`. The reason is `.busy` if the
  ///   device is already locked.
  package borrowing func lockSettings() throws(DeviceError) -> SettingsLock {
    try SettingsLock(handle)
  }

  /// Releases the lock on the settings, but keeps the priority `.record` of this handle until the
  /// capture ends.
  ///
  /// So other programs cannot change the settings during the capture.
  package borrowing func keepSettings() { handle.keepSettings() }

  /// Sets a control.
  ///
  /// If this program captures from the device, the previous value is restored when the capture
  /// ends. Otherwise the new value stays set.
  ///
  /// - Returns: The value that the driver granted.
  /// - Throws: ``DeviceError`` with the operation `.readControl` or `.setControl`.
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

/// A lock on the settings of a device.
///
/// It is released when this value is destroyed.
package struct SettingsLock: ~Copyable, Sendable {
  private let handle: DeviceHandle

  fileprivate init(_ handle: DeviceHandle) throws(DeviceError) {
    try handle.lock()
    self.handle = handle
  }

  deinit {
    // Errors are ignored. If the device is lost, the priorities of its handles no longer exist
    // anyway.
    try? handle.unlock()
  }

  /// Releases the lock on the device's settings.
  ///
  /// If the handle keeps the priority `.record` until a capture ends, other programs stay locked
  /// out until then.
  ///
  /// - Throws: ``DeviceError`` with the operation `.setPriority`.
  package borrowing func unlock() throws(DeviceError) { try handle.unlock() }
}
