// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
package import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2

extension MediaError.Code {
  /// The device rejected the mode or selected another mode.
  public static let modeRefused = Self(rawValue: "mode_refused")
  /// The device streams but delivers no frames.
  public static let noFrames = Self(rawValue: "no_frames")
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
  /// The output is not connected to a camera, or its camera has stopped.
  public static let notConnected = Self(rawValue: "not_connected")
  /// The output, or the input of an asset writer, cannot accept more data now.
  public static let notReady = Self(rawValue: "not_ready")
  /// The inputs and outputs do not fit together.
  public static let badConfiguration = Self(rawValue: "bad_configuration")
}

extension MediaError {
  /// Converts a V4L2 error from opening, configuring or streaming a device.
  init(capturing error: DeviceError) {
    let code: Code =
      switch error.reason {
      case .noPermission: .noPermission
      case .busy: .deviceBusy
      case .unplugged, .notFound, .notAVideoDevice: .deviceLost
      case .noBandwidth, .notSupported: .modeRefused
      case .outOfRange: .controlOutOfRange
      case .readOnly: .controlReadOnly
      case .outOfMemory: .outOfMemory
      case .noSignal, .unstableSignal, .signalOutOfRange, .tooManyFiles, .busFailure, .other:
        .deviceFailed
      }
    self.init(code, error.description, recovery: error.recovery, cause: error.cause)
  }

  /// Converts a system error from creating a thread or reserving memory.
  package init(exhausted error: SystemError) {
    self.init(
      .outOfMemory, error.description, recovery: "close other programs and try again",
      cause: Cause(error.operation, on: error.subject, errorNumber: error.errorNumber))
  }

  /// Runs a closure and converts its system errors to `MediaError`.
  static func exhausting<Result: ~Copyable>(
    _ work: () throws(SystemError) -> Result
  ) throws(MediaError) -> Result {
    do throws(SystemError) { return try work() } catch { throw MediaError(exhausted: error) }
  }
}
