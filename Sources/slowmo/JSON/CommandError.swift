// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The exit codes of the command, after sysexits(3) where they fit.
enum ExitStatus: Int32 {
  case done = 0
  case limitBroken = 10
  case usage = 64
  case badData = 65
  case noInput = 66
  case unavailable = 69
  case internalError = 70
  case cannotCreate = 73
  case inputOutput = 74
  case gaveUpWaiting = 75
  case noPermission = 77
  case interrupted = 130
  case terminated = 143
}

/// What ends a verb early: one line for people, a code for programs.
struct CommandError: Error {
  var status: ExitStatus
  /// The code that documents carry, such as `device_busy`.
  var code: String
  var message: String
  var hint: String

  init(_ status: ExitStatus, code: String, _ message: String, hint: String) {
    self.status = status
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// What the options given do not allow.
  static func usage(_ message: String, hint: String) -> CommandError {
    CommandError(.usage, code: "usage", message, hint: hint)
  }

  /// The line on stderr; a message of several lines becomes one.
  var line: String {
    let text = hint.isEmpty ? message : "\(message); \(hint)"
    return text.split(whereSeparator: \.isNewline).joined(separator: " ")
  }

  /// An error of the library, by the code it carries.
  private init(library code: String, _ message: String, hint: String) {
    self.init(Self.status(code), code: code, message, hint: hint)
  }

  /// Whatever the library threw, with the exit code that the command's contract gives it.
  init(_ error: any Error) {
    switch error {
    case let error as CommandError: self = error
    case let error as DiscoveryError:
      self.init(library: error.code.rawValue, error.message, hint: error.hint)
    case let error as CaptureError:
      self.init(library: error.code.rawValue, error.message, hint: error.hint)
    case let error as RecordingError:
      self.init(library: error.code.rawValue, error.message, hint: error.hint)
    case let error as AssetError:
      self.init(library: error.code.rawValue, error.message, hint: error.hint)
    case let error as ExportError:
      self.init(library: error.code.rawValue, error.message, hint: error.hint)
    case let error as TimingError:
      self.init(
        .usage, code: error.code.rawValue, error.description,
        hint: "slowmo --help tells how times are written")
    case let error as EditingError:
      self.init(
        error.code == .invalidProject ? .badData : .usage, code: error.code.rawValue,
        error.description,
        hint: error.code == .invalidProject
          ? "give a file that its program wrote" : "slowmo info tells how long a file is")
    case let error as RetimingError:
      self.init(.usage, code: error.code.rawValue, error.description, hint: "choose another speed")
    default:
      self.init(.internalError, code: "internal", "\(error)", hint: "please report this")
    }
  }

  private static func status(_ code: String) -> ExitStatus {
    switch code {
    case "bad_name", "bad_mode", "no_matching_format", "codec_refused", "bad_assignment",
      "control_not_found", "control_out_of_range", "control_read_only", "control_inactive",
      "control_not_supported",
      "empty_range", "unsupported_container", "sound_refused", "box_refused", "outside_source",
      "bad_configuration", "not_convertible":
      .usage
    case "invalid_data", "nothing_to_recover", "cut_not_on_key_frame", "unsupported_source":
      .badData
    case "file_not_found": .noInput
    case "device_not_found", "device_busy", "device_lost", "mode_refused", "device_failed",
      "not_a_capture_device", "nothing_stored", "no_signal", "being_recorded", "not_connected",
      "out_of_memory":
      .unavailable
    case "output_exists", "output_busy", "cannot_create": .cannotCreate
    case "disk_full", "write_failed", "read_failed", "output_replaced": .inputOutput
    case "no_frames": .gaveUpWaiting
    case "no_permission": .noPermission
    case "cancelled": Interrupt.status
    default: .internalError
    }
  }
}
