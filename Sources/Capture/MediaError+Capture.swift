// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
package import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankV4L2

extension MediaError.Code {
  /// The device refuses the mode, or grants another than it offered.
  public static let modeRefused = Self(rawValue: "mode_refused")
  /// The device streams but delivers no frames.
  public static let noFrames = Self(rawValue: "no_frames")
  /// The text does not set a control.
  public static let badAssignment = Self(rawValue: "bad_assignment")
  /// The device has no control of that name.
  public static let controlNotFound = Self(rawValue: "control_not_found")
  /// The device has no such control, or cannot do what is asked of it.
  public static let controlNotSupported = Self(rawValue: "control_not_supported")
  /// The control does not take such a value.
  public static let controlOutOfRange = Self(rawValue: "control_out_of_range")
  /// The control can only be read.
  public static let controlReadOnly = Self(rawValue: "control_read_only")
  /// The control has no effect while an automatic mode is on.
  public static let controlInactive = Self(rawValue: "control_inactive")
  /// Inputs and outputs that do not go together.
  public static let badConfiguration = Self(rawValue: "bad_configuration")
}

extension MediaError {
  /// A device that failed, refused or went while it was opened for capture or streamed.
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

  /// A thread or memory for a capture that the system refuses.
  package init(exhausted error: SystemError) {
    self.init(
      .outOfMemory, error.description, recovery: "close other programs and try again",
      cause: Cause(error.operation, on: error.subject, errorNumber: error.errorNumber))
  }

  /// Does work for which the system may refuse a thread or memory.
  static func exhausting<Result: ~Copyable>(
    _ work: () throws(SystemError) -> Result
  ) throws(MediaError) -> Result {
    do throws(SystemError) { return try work() } catch { throw MediaError(exhausted: error) }
  }
}
