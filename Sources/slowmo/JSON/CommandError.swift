// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The exit codes of the command.
///
/// Codes from 64 to 78 are those of sysexits(3). 130 and 143 are 128 plus the number of a signal.
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

/// An error that ends a command, with a line of text for people and a code for programs.
struct CommandError: Error {
  var status: ExitStatus
  /// The error code in JSON documents, such as `device_busy`.
  var code: String
  var message: String
  var hint: String

  init(_ status: ExitStatus, code: String, _ message: String, hint: String) {
    (self.status, self.code, self.message, self.hint) = (status, code, message, hint)
  }

  /// Creates a usage error, for options that are invalid or conflict.
  static func usage(_ message: String, hint: String) -> CommandError {
    CommandError(.usage, code: "usage", message, hint: hint)
  }

  /// The line on standard error.
  ///
  /// Line breaks in the message become spaces.
  var line: String {
    let text = hint.isEmpty ? message : "\(message); \(hint)"
    return text.split(whereSeparator: \.isNewline).joined(separator: " ")
  }

  /// Converts any error, and chooses the exit status that belongs to its error code.
  ///
  /// If `verb` is given, the hint names only options of this command.
  init(_ error: any Error, in verb: String? = nil) {
    switch error {
    case let error as CommandError: self = error
    case let error as MediaError:
      self.init(
        Self.status(error.code.rawValue), code: error.code.rawValue, error.message,
        hint: error.recovery.map { Advice.text($0, for: verb) } ?? Self.hint(error.code))
      if error.code == .shardMissing || error.code == .shardDamaged || error.code == .shardForeign {
        hint += " (--shard, then --join)"
      }
    default:
      self.init(.internalError, code: "internal", "\(error)", hint: "report this error")
    }
  }

  /// Returns a hint for an error without a recovery suggestion.
  private static func hint(_ code: MediaError.Code) -> String {
    switch code {
    case .overflow, .notPositive, .syntax: "see slowmo --help for the syntax of times"
    case .invalidProject: "choose a project of an editing program"
    case .speedOutOfRange, .unsupportedFormat, .invalidMappings, .notAscending, .invalidSamples,
      .engine:
      "choose another speed"
    // This code is declared by a library that this module does not link.
    case MediaError.Code(rawValue: "no_display"):
      "run it on a screen, or without a window: --terminal"
    default: "see slowmo info for the duration of a file"
    }
  }

  private static func status(_ code: String) -> ExitStatus {
    switch code {
    case "bad_name", "bad_mode", "no_matching_format", "no_high_frame_rate", "codec_refused",
      "bad_assignment",
      "control_not_found", "control_out_of_range", "control_read_only", "control_inactive",
      "control_not_supported",
      "empty_range", "unsupported_container", "sound_refused", "box_refused", "outside_source",
      "bad_configuration", "not_convertible", "overflow", "not_positive", "syntax", "not_exact",
      "outside_composition", "overlapping_ranges", "invalid_segments", "cut_in_ramp",
      "frame_rate_needed", "speed_out_of_range", "unsupported_format", "invalid_mappings",
      "not_ascending", "invalid_samples", "engine", "invalid_metadata", "rate_out_of_range",
      "shard_refused", "image_too_large", "metadata_type_unavailable",
      "file_length_refused", "burn_in_refused", "output_frame_rate_refused", "no_such_track":
      .usage
    case "invalid_data", "nothing_to_recover", "cut_not_on_key_frame", "unsupported_source",
      "invalid_project", "missing_asset", "shard_damaged", "shard_foreign", "nothing_in_common",
      "ambiguous_match", "unknown_capture_time":
      .badData
    case "file_not_found", "shard_missing": .noInput
    case "device_not_found", "device_busy", "device_lost", "mode_refused", "device_failed",
      "not_a_capture_device", "nothing_stored", "no_signal", "being_recorded", "not_connected",
      "out_of_memory", "no_audio_output", "no_display", "no_renderer", "missing_encoder",
      "missing_component":
      .unavailable
    case "output_exists", "output_busy", "cannot_create": .cannotCreate
    case "disk_full", "write_failed", "read_failed", "output_replaced": .inputOutput
    case "no_frames": .gaveUpWaiting
    case "no_permission": .noPermission
    case "cancelled": Interrupt.status
    default: .internalError
    }
  }

  /// Creates a usage error from a message of ArgumentParser, in the wording of all other errors.
  ///
  /// If the message lists the allowed values, they become the hint. If not, the hint names a help
  /// page.
  static func usage(parserMessage: String, page: String) -> CommandError {
    var text = parserMessage
    var hint = "see \(page)"
    if let list = text.firstRange(of: ". Please provide one of ") {
      let values = text[list.upperBound...]
      var names = values.matches(of: /'([^']*)'/).map { String($0.output.1) }
      if names.isEmpty {
        names = values.split(separator: "\n").filter { $0.hasPrefix("  - ") }
          .map { String($0.dropFirst(4)) }
      }
      hint = "choose \(UnknownName.choice(of: names))"
      text = String(text[..<list.lowerBound])
    }
    return .usage(text.prefix(1).lowercased() + text.dropFirst(), hint: hint)
  }
}
