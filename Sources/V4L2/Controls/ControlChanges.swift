// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore

/// A record of control changes, for restoring the previous values.
///
/// The value of a control is saved once, before its first change. Each call receives the device.
/// Changes can therefore start on the device and be restored on the ``BufferQueue`` that owns it
/// later.
///
/// ```swift
/// var changes = ControlChanges()
/// try changes.set(.automaticExposure, to: 1, on: device)
/// try changes.set(.exposureTime, to: 40, on: device)
/// // …
/// let failures = changes.restore(on: device)    // the exposure time, then the mode
/// ```
package struct ControlChanges: Sendable {
  private var remembered: [ControlSetting] = []

  package init() {}

  /// The changed controls, in the order of their first change.
  package var changedControls: [ControlID] { remembered.map(\.control.id) }

  /// Sets a control to a number and saves its previous value on the first change.
  ///
  /// A button or a write-only control has no readable value, so nothing is saved for it.
  ///
  /// - Parameters:
  ///   - id: The control.
  ///   - number: The new value.
  ///   - device: The device, which may be streaming.
  /// - Returns: The value that the driver granted.
  /// - Throws: ``CallFailure`` with the operation `.readControl` or `.setControl`. The reason is
  ///   `.notSupported` if the device lacks the control.
  @discardableResult
  package mutating func set(
    _ id: ControlID, to number: Int64, on device: borrowing some ControlChannel & ~Copyable
  ) throws(CallFailure) -> Int64 {
    guard let control = try device.control(id) else {
      throw CallFailure(.setControl, device.path, code: ENOTSUP, control: id.wellKnownName)
    }
    return try set(control, to: .number(number), on: device).number ?? number
  }

  /// Sets a control to a value of any kind and saves its previous value on the first change.
  ///
  /// - Parameters:
  ///   - control: The control as described by the device.
  ///   - value: The new value.
  ///   - device: The device, which may be streaming.
  /// - Returns: The value that the driver granted.
  /// - Throws: ``CallFailure`` with the operation `.readControl` or `.setControl`.
  @discardableResult
  package mutating func set(
    _ control: DeviceControl, to value: ControlValue,
    on device: borrowing some ControlChannel & ~Copyable
  ) throws(CallFailure) -> ControlValue {
    let isKnown = remembered.contains { $0.control.id == control.id }
    let old = isKnown ? nil : try device.value(of: control)
    let granted = try device.set(control, to: value)
    // The previous value is saved only after the change succeeded. A rejected request has not
    // changed the control.
    if let old { remembered.append(ControlSetting(control, to: old)) }
    return granted
  }

  /// Restores all saved values in reverse order and forgets them.
  ///
  /// If a control cannot be restored, the other controls still are restored. A second call does
  /// nothing.
  ///
  /// - Parameter device: The device, which may be streaming.
  /// - Returns: The errors of the controls that could not be restored, in the order of restoring.
  package mutating func restore(on device: borrowing some ControlChannel & ~Copyable)
    -> [CallFailure]
  {
    var failures: [CallFailure] = []
    for setting in remembered.reversed() {
      do throws(CallFailure) {
        try device.set(setting.control, to: setting.value)
      } catch {
        failures.append(error)
      }
    }
    remembered = []
    return failures
  }
}
