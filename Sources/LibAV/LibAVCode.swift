// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// An error code of FFmpeg: a negative errno, or a negative number of FFmpeg's own.
enum LibAVCode {
  /// Returns the errno that a code represents: `AVERROR(e)` is `-e`; a code of FFmpeg's own is
  /// returned as it is.
  static func number(_ code: Int32) -> Int32 { code < 0 && code > -4096 ? -code : code }

  /// Returns the meaning of a code.
  static func kind(_ code: Int32) -> CallFailure.Kind {
    switch code {
    case CFFmpeg_INVALIDDATA: .invalidData
    case CFFmpeg_EXIT: .cancelled
    // A ``ReadWatch`` ended an endless loop of libavformat, which only damaged files cause.
    case -ETIMEDOUT: .invalidData
    default: CallFailure.kind(ofSystemNumber: number(code))
    }
  }

  /// Returns FFmpeg's description of a code (av_strerror).
  static func text(_ code: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      guard let start = buffer.baseAddress, av_strerror(code, start, 128) == 0 else {
        return "error \(code)"
      }
      return String(cString: start)
    }
  }
}

extension CallFailure {
  /// Creates the failure of a call to FFmpeg, without a log line.
  package init(_ operation: String, _ subject: String, code: Int32) {
    self.init(operation, subject, code: code, logLine: nil)
  }

  /// Creates the failure of a call inside ``LibAVLog/during(_:)``, with the line that the call
  /// logged.
  init(
    _ operation: String, _ subject: String, code: Int32, kind: Kind? = nil, logLine: String?
  ) {
    let reason = LibAVCode.text(code)
    let log = logLine.map { " (libav: \"\($0)\")" } ?? ""
    self.init(
      operation, subject, LibAVCode.number(code), kind ?? LibAVCode.kind(code), reason: reason,
      logLine: logLine, message: "could not \(operation) \(subject): \(reason)\(log)")
  }

  /// Returns the same failure with another name for the subject, which also replaces the old name
  /// in the log line.
  package func renamed(from subject: String, to name: String) -> CallFailure {
    let renamed = self.subject == subject ? name : self.subject
    let line = logLine?.replacing(subject, with: name)
    let log = line.map { " (libav: \"\($0)\")" } ?? ""
    return CallFailure(
      operation, renamed, number, kind, reason: reason, recovery: recovery, logLine: line,
      message: "could not \(operation) \(renamed): \(reason)\(log)")
  }

  /// Whether only a part of the data is damaged, so that reading can continue after that part.
  ///
  /// False for system errors, such as disk errors, and for a cancellation, because the next call
  /// would fail in the same way.
  package var isDamage: Bool { systemNumber == nil && kind != .cancelled }

  /// The name of the file's format if that format is not accepted; otherwise nil.
  package var unsupportedFormat: String? {
    // libavformat logs "[hls @ 0x…] Format not on whitelist …", with the format's name in brackets.
    guard let logLine, logLine.contains("not on whitelist"), logLine.hasPrefix("[") else {
      return nil
    }
    return logLine.dropFirst().split(whereSeparator: { " ,@]".contains($0) }).first.map(String.init)
  }

  /// Throws an error if the result of a call that parses data is negative.
  ///
  /// Some decoders return -1 for invalid data. This value could be mistaken for an `errno` value,
  /// so it is treated as invalid data.
  ///
  /// The call must have run in ``LibAVLog/during(_:)`` on this thread.
  static func checkData(
    result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(CallFailure) {
    try check(result: result == -1 ? CFFmpeg_INVALIDDATA : result, operation(), subject())
  }

  /// Runs a call.
  ///
  /// Throws an error for a negative result, by which FFmpeg reports failures.
  static func check(
    _ call: @autoclosure () -> Int32, _ operation: @autoclosure () -> String,
    _ subject: @autoclosure () -> String
  ) throws(CallFailure) {
    try check(result: LibAVLog.during(call), operation(), subject())
  }

  /// Throws an error if the result of a call is negative.
  ///
  /// The call must have run in ``LibAVLog/during(_:)`` on this thread.
  static func check(
    result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(CallFailure) {
    guard result < 0 else { return }
    throw CallFailure(operation(), subject(), code: result, logLine: LibAVLog.takeLine())
  }
}

extension WholeFile {
  /// Returns the failure with the user's file name in place of the temporary name.
  package borrowing func errorNamingTarget(_ failure: CallFailure) -> CallFailure {
    failure.renamed(from: writtenPath, to: target)
  }
}
