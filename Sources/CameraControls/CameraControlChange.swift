// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// A change of a camera control by this program, another program or the camera itself.
public struct CameraControlChange: Hashable, Sendable {
  /// The control's name, as in ``CameraControl/name``.
  public let name: String
  /// The new value, or nil where the value is not a number.
  public let value: Int64?
  /// Whether the control currently has no effect, because an automatic mode determines the setting.
  public let isInactive: Bool
  /// Whether the control's range or default value changed.
  public let changesRange: Bool
}

extension CameraControls {
  /// Observes changes of controls by this program, other programs and the camera.
  ///
  /// A camera in an automatic mode changes some values continually. Such changes are reported only
  /// if the driver sends events for them. A background thread opens the device a second time and
  /// waits there for the events. The thread ends at most 0.1 s after the sequence is released or
  /// its task is cancelled. The sequence buffers the newest 256 changes.
  ///
  /// - Parameter names: The controls to observe, as in ``CameraControl/name``. Default: all.
  ///   Controls of an LED with a separate device node are not observed.
  /// - Returns: A sequence that never ends normally. It throws a `MediaError` when the device is
  ///   lost.
  /// - Throws: `MediaError` with `.controlNotSupported` if the device lacks a named control, or if
  ///   the driver sends no control events.
  public func changes(
    of names: [String] = []
  ) throws(MediaError) -> some AsyncSequence<CameraControlChange, MediaError> & Sendable {
    guard let node = camera.ownNode else { throw camera.missing("controls") }
    let watched = try ControlledNode(reopening: node)
    var spelled: [ControlID: String] = [:]
    let controls = try watched.useOwn { device throws(CallFailure) in try device.controls() }
    for control in controls
    where control.kind != .heading && (names.isEmpty || names.contains(control.spelledName)) {
      // A driver may support events for some controls only. The other controls are skipped.
      let isSubscribed: Void? = try? watched.useOwn { device throws(CallFailure) in
        try device.subscribe(to: .control(control.id))
      }
      if isSubscribed != nil { spelled[control.id] = control.spelledName }
    }
    if let unknown = names.first(where: { name in !controls.contains { $0.spelledName == name } }) {
      throw camera.missing(unknown)
    }
    guard !spelled.isEmpty else { throw camera.missing("events of controls") }

    return try CameraEvents(of: watched, spelled) {
      names, event, _ throws(CallFailure) in
      guard case .control(let change) = event?.kind, let name = names[change.id] else { return [] }
      return [
        CameraControlChange(
          name: name, value: change.value, isInactive: change.flags.contains(.inactive),
          changesRange: change.changesRange)
      ]
    }
  }
}
