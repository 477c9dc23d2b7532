// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore

extension MediaError.Code {
  /// The device rejected the mode or selected another mode.
  public static let modeRefused = Self(rawValue: "mode_refused")
  /// The text is not a control assignment.
  public static let badAssignment = Self(rawValue: "bad_assignment")
  /// The device has no control with this name.
  public static let controlNotFound = Self(rawValue: "control_not_found")
  /// The device lacks the control or the requested capability.
  public static let controlNotSupported = Self(rawValue: "control_not_supported")
  /// The value is outside the control's range.
  public static let controlOutOfRange = Self(rawValue: "control_out_of_range")
  /// The control is read-only.
  public static let controlReadOnly = Self(rawValue: "control_read_only")
  /// The control has no effect while an automatic mode is on.
  public static let controlInactive = Self(rawValue: "control_inactive")
}

extension CallStage {
  /// Opening, configuring or streaming a device.
  package static let capturing = CallStage(
    [
      .noPermission: Row(.noPermission), .busy: Row(.deviceBusy), .unplugged: Row(.deviceLost),
      .notFound: Row(.deviceLost), .notVideoDevice: Row(.deviceLost),
      .noBandwidth: Row(.modeRefused), .notSupported: Row(.modeRefused),
      .outOfRange: Row(.controlOutOfRange), .readOnly: Row(.controlReadOnly),
    ], other: Row(.deviceFailed))
}
