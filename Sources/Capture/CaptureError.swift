// SPDX-License-Identifier: Apache-2.0

package import OvercrankLinuxSystem

/// Why a capture could not start, or ended before it was asked to.
public struct CaptureError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Hashable, Sendable {
    /// The name that documents carry, such as `device_busy`.
    public let rawValue: String
    /// Another program streams from the device.
    public static let deviceBusy = Code(rawValue: "device_busy")
    /// The device is not there, or was unplugged.
    public static let deviceLost = Code(rawValue: "device_lost")
    /// This user may not open the device.
    public static let noPermission = Code(rawValue: "no_permission")
    /// The device refuses the mode, or grants another than it offered.
    public static let modeRefused = Code(rawValue: "mode_refused")
    /// The device streams but delivers no frames.
    public static let noFrames = Code(rawValue: "no_frames")
    /// The device or its driver failed while it streamed.
    public static let deviceFailed = Code(rawValue: "device_failed")
    /// The file that plays the camera cannot be read.
    public static let badFile = Code(rawValue: "invalid_data")
    /// The text sets no control.
    public static let badAssignment = Code(rawValue: "bad_assignment")
    /// The device has no control of that name.
    public static let controlNotFound = Code(rawValue: "control_not_found")
    /// The device has no such control, or cannot do what it is asked for.
    public static let controlNotSupported = Code(rawValue: "control_not_supported")
    /// The control does not take such a value.
    public static let controlOutOfRange = Code(rawValue: "control_out_of_range")
    /// The control can only be read.
    public static let controlReadOnly = Code(rawValue: "control_read_only")
    /// The control has no effect while an automatic decides.
    public static let controlInactive = Code(rawValue: "control_inactive")
    /// Not enough memory for the buffers.
    public static let outOfMemory = Code(rawValue: "out_of_memory")
    /// The picture cannot be converted.
    public static let notConvertible = Code(rawValue: "not_convertible")
    /// Inputs and outputs that do not go together.
    public static let badConfiguration = Code(rawValue: "bad_configuration")
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

  /// The system refuses a thread or memory for a capture.
  package init(_ error: SystemError) {
    self.init(.outOfMemory, error.description, hint: "close other programs and try again")
  }

  /// The result of the work, whose failures are told as ``init(_:)`` tells them.
  static func converting<Result: ~Copyable>(
    _ work: () throws(SystemError) -> Result
  ) throws(CaptureError) -> Result {
    do throws(SystemError) { return try work() } catch { throw CaptureError(error) }
  }

  /// The message and the hint in one line.
  public var description: String { "\(message); \(hint)" }
}
