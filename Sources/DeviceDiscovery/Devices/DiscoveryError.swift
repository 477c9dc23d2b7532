// SPDX-License-Identifier: Apache-2.0

import OvercrankV4L2

/// Why a device or a mode could not be found.
public struct DiscoveryError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Hashable, Sendable {
    /// The name that documents carry, such as `device_busy`.
    public let rawValue: String
    /// There is no such device.
    public static let notFound = Code(rawValue: "device_not_found")
    /// Another program streams from the device.
    public static let busy = Code(rawValue: "device_busy")
    /// This user may not open the device or file.
    public static let noPermission = Code(rawValue: "no_permission")
    /// What the name stands for gives no pictures.
    public static let notACaptureDevice = Code(rawValue: "not_a_capture_device")
    /// The device has no such mode.
    public static let noMatchingFormat = Code(rawValue: "no_matching_format")
    /// The device was unplugged.
    public static let unplugged = Code(rawValue: "device_lost")
    /// The device or its driver failed.
    public static let deviceFailed = Code(rawValue: "device_failed")
    /// Nothing usable comes in at the input: no signal, an unstable one, or one out of range.
    public static let noSignal = Code(rawValue: "no_signal")
    /// The text is not in the syntax of device names, or fits several devices.
    public static let badName = Code(rawValue: "bad_name")
    /// The text is not in the syntax of modes.
    public static let badMode = Code(rawValue: "bad_mode")
    /// There is no such file to play as a camera.
    public static let fileNotFound = Code(rawValue: "file_not_found")
    /// The file that is to play a camera cannot be read.
    public static let badFile = Code(rawValue: "invalid_data")
    /// What the user prefers could not be written down.
    public static let notRemembered = Code(rawValue: "not_remembered")
  }

  /// What kind of failure this is.
  public let code: Code
  /// What failed, on which device, and why: one line.
  public let message: String
  /// What to try next: one line.
  public let hint: String

  /// Makes an error of a kind, with its two lines.
  public init(_ code: Code, _ message: String, hint: String) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  init(_ error: DeviceError) {
    let code: Code =
      switch error.reason {
      case .noPermission: .noPermission
      case .notFound: .notFound
      case .busy: .busy
      case .unplugged: .unplugged
      case .notAVideoDevice: .notACaptureDevice
      case .noSignal, .unstableSignal, .signalOutOfRange: .noSignal
      case .noBandwidth, .notSupported, .outOfRange, .readOnly, .outOfMemory, .tooManyFiles,
        .busFailure, .other:
        .deviceFailed
      }
    self.init(code, error.description, hint: error.hint)
  }

  /// The message and the hint in one line.
  public var description: String { "\(message); \(hint)" }
}
