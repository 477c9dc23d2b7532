// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The changes that a program made to a camera's controls, so that it can take them back.
///
/// Each control's value is remembered once, before its first change. The device is opened for each
/// call, so that changes may be made before a ``BufferQueue`` takes the device over, and taken
/// back on the queue.
///
/// ```swift
/// var changes = ControlChanges()
/// try changes.set(.automaticExposure, to: 1, on: device)
/// try changes.set(.exposureTime, to: 40, on: device)
/// // …
/// let failures = changes.restore(on: device)    // the exposure time, then its automatic
/// ```
package struct ControlChanges: Sendable {
  private var remembered: [ControlSetting] = []

  package init() {}

  /// The controls that were changed, in the order of their first change.
  package var changedControls: [ControlID] { remembered.map(\.control.id) }

  /// Sets a control to a number, and remembers what it held before the first time.
  ///
  /// What cannot be read (a button, a control that can only be written) is not remembered.
  ///
  /// - Parameters:
  ///   - id: The control.
  ///   - number: Its new value.
  ///   - device: The device, which may be streaming.
  /// - Returns: The value that the driver says it took.
  /// - Throws: ``DeviceError`` for `.readControl` and `.setControl`, with `.notSupported` where
  ///   the device has no such control.
  @discardableResult
  package mutating func set(
    _ id: ControlID, to number: Int64, on device: borrowing some ControlChannel & ~Copyable
  ) throws(DeviceError) -> Int64 {
    guard let control = try device.control(id) else {
      throw DeviceError(.setControl, device.path, code: ENOTSUP, control: id.wellKnownName)
    }
    return try set(control, to: .number(number), on: device).number ?? number
  }

  /// Sets a control to a value of any kind, and remembers what it held before the first time.
  ///
  /// - Parameters:
  ///   - control: The control, as the device describes it.
  ///   - value: Its new value.
  ///   - device: The device, which may be streaming.
  /// - Returns: The value that the driver says it took.
  /// - Throws: ``DeviceError`` for `.readControl` and `.setControl`.
  @discardableResult
  package mutating func set(
    _ control: DeviceControl, to value: ControlValue,
    on device: borrowing some ControlChannel & ~Copyable
  ) throws(DeviceError) -> ControlValue {
    let isKnown = remembered.contains { $0.control.id == control.id }
    let old = isKnown ? nil : try device.value(of: control)
    let granted = try device.set(control, to: value)
    // Only what was changed is taken back; a refusal changed nothing.
    if let old { remembered.append(ControlSetting(control, to: old)) }
    return granted
  }

  /// Sets every control back to what it held, the last one first, and forgets them.
  ///
  /// A failure does not keep the others from being restored. A second call does nothing.
  ///
  /// - Parameter device: The device, which may be streaming.
  /// - Returns: What went wrong, in the order it did.
  package mutating func restore(on device: borrowing some ControlChannel & ~Copyable)
    -> [DeviceError]
  {
    var failures: [DeviceError] = []
    for setting in remembered.reversed() {
      do throws(DeviceError) {
        try device.set(setting.control, to: setting.value)
      } catch {
        failures.append(error)
      }
    }
    remembered = []
    return failures
  }
}
