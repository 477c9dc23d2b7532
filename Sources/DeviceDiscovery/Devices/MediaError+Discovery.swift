// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

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
  /// The device has no such format.
  public static let noMatchingFormat = Self(rawValue: "no_matching_format")
  /// No usable signal at the input: none, an unstable one, or one out of range.
  public static let noSignal = Self(rawValue: "no_signal")
  /// The text is not a device name, or fits several devices.
  public static let badName = Self(rawValue: "bad_name")
  /// The text is not in the syntax of modes.
  public static let badMode = Self(rawValue: "bad_mode")
  /// The preferred device could not be stored.
  public static let notRemembered = Self(rawValue: "not_remembered")
}

extension MediaError {
  /// A device that could not be opened or asked what it can do.
  init(discovering error: DeviceError) {
    let code: Code =
      switch error.reason {
      case .noPermission: .noPermission
      case .notFound: .deviceNotFound
      case .busy: .deviceBusy
      case .unplugged: .deviceLost
      case .notAVideoDevice: .notACaptureDevice
      case .noSignal, .unstableSignal, .signalOutOfRange: .noSignal
      case .noBandwidth, .notSupported, .outOfRange, .readOnly, .outOfMemory, .tooManyFiles,
        .busFailure, .other:
        .deviceFailed
      }
    self.init(code, error.description, recovery: error.recovery, cause: error.cause)
  }
}
