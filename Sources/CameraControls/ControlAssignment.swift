// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import OvercrankV4L2

/// A control and its new value in text form, such as `exposure_time_absolute=4ms`.
///
/// | The control is | The value is written |
/// |---|---|
/// | a number | `40`, `-3`, `0x1f`; in its own unit |
/// | a time | also `4ms`, `250us`, `0.004s`, if it is a whole number of the unit |
/// | a switch | `0`, `1`, `on`, `off`, `true`, `false` |
/// | a menu | the item's number, or its name in any case: `1`, `"Manual Mode"` |
/// | text | as it is |
/// | an array | `1,2,3` |
/// | a rectangle | `640x480+0+0`: width, height, left, top |
/// | a button | anything |
///
/// `default` restores the driver's default for a number.
public struct ControlAssignment: Hashable, Sendable {
  /// The control's name, as in ``CameraControl/name``, or its number, such as `0x009a0902`.
  public let name: String
  /// The new value in text form.
  public let text: String

  /// Creates an assignment from a name and a value.
  public init(name: String, text: String) {
    (self.name, self.text) = (name, text)
  }

  /// Parses `NAME=VALUE`.
  ///
  /// - Throws: `MediaError` with `.badAssignment` for text without a name and an equals sign.
  public init(parsing text: String) throws(MediaError) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty else {
      throw MediaError(
        .badAssignment, "\"\(text)\" is not an assignment",
        recovery: "write NAME=VALUE, such as gain=64")
    }
    self.init(name: String(parts[0]), text: String(parts[1]))
  }
}

extension CameraControls {
  /// Sets several controls by name, all or none.
  ///
  /// All assignments are checked before any is made: names, values, ranges and flags. If an
  /// automatic mode overrides a control, the control is accepted only if the same call switches
  /// that mode off. Automatic modes are set first, then the other controls in the given order. If
  /// the camera rejects an assignment, the previous ones are undone.
  ///
  /// - Parameter assignments: The controls and their values, each control at most once.
  /// - Returns: The controls with the values the driver then reports, in the order of
  ///   `assignments`.
  /// - Throws: `MediaError` with `.controlNotFound`, `.controlOutOfRange`, `.controlReadOnly`,
  ///   `.controlInactive`, `.badAssignment`; `.deviceBusy`, `.deviceLost` or `.deviceFailed` when
  ///   the camera rejects an assignment.
  @discardableResult
  public func set(_ assignments: [ControlAssignment]) throws(MediaError) -> [CameraControl] {
    let controls = try described()
    var settings: [ControlSetting] = []
    for assignment in assignments {
      let control = try find(assignment.name, among: controls)
      guard !settings.contains(where: { $0.control.id == control.id }) else {
        throw MediaError(
          .badAssignment, "\(assignment.name) is set twice", recovery: "set each control once")
      }
      let value = try control.value(parsing: assignment.text, of: camera.deviceName)
      settings.append(ControlSetting(control, to: value))
    }
    for setting in settings { try refuseUnsettable(setting.control, among: controls, settings) }
    try write(inOrder(settings))
    let held = try list()
    return settings.compactMap { setting in
      held.first { $0.id == setting.control.id.rawValue }
    }
  }

  private func find(
    _ name: String, among controls: [DeviceControl]
  ) throws(MediaError) -> DeviceControl {
    let number = name.hasPrefix("0x") ? UInt32(name.dropFirst(2), radix: 16) : nil
    let found = controls.filter { $0.spelledName == name || $0.id.rawValue == number }
    if let control = found.first, found.count == 1 { return control }
    if found.count > 1 {
      let numbers = found.map { "0x\(String($0.id.rawValue, radix: 16))" }
      throw MediaError(
        .controlNotFound, "\(camera.deviceName) has several controls named \(name)",
        recovery: "name one by its number: \(numbers.joined(separator: ", "))")
    }
    let nearest = Spelling.nearest(to: name, among: controls.map(\.spelledName))
    throw MediaError(
      .controlNotFound, "\(camera.deviceName) has no control named \(name)",
      recovery: controls.isEmpty
        ? "leave it out: the device has no controls"
        : nearest.isEmpty
          ? Recovery("choose a control that it has", .listControls(device: camera.deviceName))
          : "did you mean \(nearest.joined(separator: " or "))?")
  }

  private func refuseUnsettable(
    _ control: DeviceControl, among controls: [DeviceControl], _ settings: [ControlSetting]
  ) throws(MediaError) {
    let name = control.spelledName
    if control.flags.contains(.readOnly) {
      throw MediaError(
        .controlReadOnly, "\(name) of \(camera.deviceName) can only be read",
        recovery: "leave it out: the camera sets it")
    }
    if control.flags.contains(.grabbed) {
      let other = DeviceHolder.find(of: camera.deviceName).map(\.description).joined(
        separator: ", ")
      throw MediaError(
        .deviceBusy, "\(name) of \(camera.deviceName) cannot be changed while the camera streams",
        recovery: other.isEmpty
          ? "stop the recording first" : "\(other) has it open; close that first")
    }
    guard control.flags.contains(.inactive) else { return }
    let automatic = controls.first { $0.id == control.id.automatic }
    if let automatic {
      // The control is not rejected if another assignment of this call switches the automatic mode
      // off.
      let planned = settings.first { $0.control.id == automatic.id }?.value.number
      if let planned, automatic.id.isManual(at: planned) { return }
    }
    throw MediaError(
      .controlInactive, "\(name) of \(camera.deviceName) has no effect now",
      recovery: automatic.flatMap(\.advice) ?? "another control switches it off")
  }

  /// Moves the settings of automatic modes before all other settings.
  ///
  /// The driver rejects a control while an automatic mode overrides it, so the mode must be
  /// switched off first.
  private func inOrder(_ settings: [ControlSetting]) -> [ControlSetting] {
    let automatics = Set(settings.compactMap(\.control.id.automatic))
    return settings.filter { automatics.contains($0.control.id) }
      + settings.filter { !automatics.contains($0.control.id) }
  }

  private func write(_ settings: [ControlSetting]) throws(MediaError) {
    var changes: [(node: ControlledNode, made: ControlChanges)] = []
    do throws(MediaError) {
      for setting in settings {
        guard let node = camera.node(for: setting.control.id) else { continue }
        changes.append((node, ControlChanges()))
        // The control's description is read again, because an earlier assignment may have changed
        // the control's range.
        _ = try node.use { device throws(CallFailure) in
          let control = try device.control(setting.control.id) ?? setting.control
          return try changes[changes.count - 1].made.set(control, to: setting.value, on: device)
        }
      }
    } catch {
      // Errors during the undo are ignored, because the caller needs the original error.
      for (node, made) in changes.reversed() {
        var made = made
        _ = try? node.use { device throws(CallFailure) in made.restore(on: device) }
      }
      throw error
    }
  }
}

extension DeviceControl {
  /// Advice on how to switch this automatic mode off, or nil if its menu has no manual item.
  fileprivate var advice: Recovery? {
    if kind.isMenu {
      guard let item = menu.first(where: { id.isManual(at: $0.index) }) else { return nil }
      return "switch the automatic mode off first: \(spelledName)=\(item.index) (\(item.name))"
    }
    return "switch the automatic mode off first: \(spelledName)=0"
  }
}
