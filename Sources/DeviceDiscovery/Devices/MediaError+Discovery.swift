// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

extension MediaError.Code {
  /// The device does not exist.
  public static let deviceNotFound = Self(rawValue: "device_not_found")
  /// Another program streams from the device.
  public static let deviceBusy = Self(rawValue: "device_busy")
  /// The device was unplugged.
  public static let deviceLost = Self(rawValue: "device_lost")
  /// The device or its driver failed.
  public static let deviceFailed = Self(rawValue: "device_failed")
  /// The device delivers no video, or no audio.
  public static let notACaptureDevice = Self(rawValue: "not_a_capture_device")
  /// The device does not support the format.
  public static let noMatchingFormat = Self(rawValue: "no_matching_format")
  /// The device has no format above 30 frames per second.
  public static let noHighFrameRate = Self(rawValue: "no_high_frame_rate")
  /// The input has no signal, or its signal is unstable or out of range.
  public static let noSignal = Self(rawValue: "no_signal")
  /// The text is not a device name, or it matches several devices.
  public static let badName = Self(rawValue: "bad_name")
  /// The text is not a valid mode.
  public static let badMode = Self(rawValue: "bad_mode")
  /// The preferred device could not be stored.
  public static let notRemembered = Self(rawValue: "not_remembered")
}

extension CallStage {
  /// Opening or querying a device.
  static let discovering = CallStage(
    [
      .noPermission: Row(.noPermission), .notFound: Row(.deviceNotFound), .busy: Row(.deviceBusy),
      .unplugged: Row(.deviceLost), .notVideoDevice: Row(.notACaptureDevice),
      .noSignal: Row(.noSignal), .unstableSignal: Row(.noSignal),
      .signalOutOfRange: Row(.noSignal),
    ], other: Row(.deviceFailed))
}
