// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// A failed FFmpeg call: the operation, its subject and the error code.
package struct LibAVError: Error, Sendable, CustomStringConvertible {
  /// The operation, as a phrase that fits between "could not" and the subject.
  package let operation: String
  /// The name of the file, codec or track that the call worked on.
  package let subject: String
  /// The negative error code from FFmpeg.
  package let code: Int32
  /// The last error that FFmpeg logged during the call, on the same thread.
  ///
  /// This line often explains the failure better than the code does.
  package let logLine: String?

  /// Creates an error without a log line.
  package init(_ operation: String, _ subject: String, code: Int32) {
    self.init(operation, subject, code: code, logLine: nil)
  }

  /// Creates an error from a failed system call, with the code that FFmpeg uses for it.
  package init(_ error: SystemError) {
    self.init(error.operation, error.subject, code: -error.errorNumber, logLine: nil)
  }

  /// Runs file operations.
  ///
  /// Converts a `SystemError` to a `LibAVError`.
  package static func converting<Result: ~Copyable>(
    _ work: () throws(SystemError) -> Result
  ) throws(LibAVError) -> Result {
    do throws(SystemError) { return try work() } catch { throw LibAVError(error) }
  }

  /// Returns the same error with another name for the subject, which also replaces the old name in
  /// the log line.
  package func renamed(from subject: String, to name: String) -> LibAVError {
    LibAVError(
      operation, self.subject == subject ? name : self.subject, code: code,
      logLine: logLine?.replacing(subject, with: name))
  }

  /// Creates the error of a call inside ``LibAVLog/during(_:)``, with the line that the call
  /// logged.
  init(_ operation: String, _ subject: String, code: Int32, logLine: String?) {
    self.operation = operation
    self.subject = subject
    self.code = code
    self.logLine = logLine
  }

  /// FFmpeg's description of the error code (av_strerror).
  package var reason: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      guard let start = buffer.baseAddress, av_strerror(code, start, 128) == 0 else {
        return "error \(code)"
      }
      return String(cString: start)
    }
  }

  package var description: String {
    let log = logLine.map { " (libav: \"\($0)\")" } ?? ""
    return "could not \(operation) \(subject): \(reason)\(log)"
  }

  /// A description of the failed call for the public `MediaError`.
  package var cause: MediaError.Cause {
    MediaError.Cause(operation, on: subject, errorNumber: systemErrorNumber)
  }

  /// The `errno` value, if the code represents one: `AVERROR(e)` is `-e`.
  ///
  /// Nil for FFmpeg's own codes.
  package var systemErrorNumber: Int32? { code < 0 && code > -4096 ? -code : nil }

  /// Whether the data is invalid.
  ///
  /// Other frames of the file may still be readable.
  package var isInvalidData: Bool { code == CFFmpeg_INVALIDDATA }

  /// Whether a ``ReadWatch`` interrupted the call, because all reading was cancelled.
  package var isCancelled: Bool { code == CFFmpeg_EXIT }

  /// Whether only a part of the data is damaged, so that reading can continue after that part.
  ///
  /// False for system errors, such as disk errors, and for a cancellation, because the next call
  /// would fail in the same way.
  package var isDamage: Bool { systemErrorNumber == nil && !isCancelled }

  /// The name of the file's format if that format is not accepted; otherwise nil.
  package var unsupportedFormat: String? {
    // libavformat logs "[hls @ 0x…] Format not on whitelist …", with the format's name in brackets.
    guard let logLine, logLine.contains("not on whitelist"), logLine.hasPrefix("[") else {
      return nil
    }
    return logLine.dropFirst().split(whereSeparator: { " ,@]".contains($0) }).first.map(String.init)
  }

  /// Whether the disk is full, the user's quota is exhausted, or the file is too large.
  package var isDiskFull: Bool {
    systemErrorNumber.map { [ENOSPC, EDQUOT, EFBIG].contains($0) } ?? false
  }

  /// Throws an error if the result of a call that parses data is negative.
  ///
  /// Some decoders return -1 for invalid data. This value could be mistaken for an `errno` value,
  /// so it is treated as invalid data.
  ///
  /// The call must have run in ``LibAVLog/during(_:)`` on this thread.
  static func checkData(
    result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    try check(result: result == -1 ? CFFmpeg_INVALIDDATA : result, operation(), subject())
  }

  /// Runs calls of libavfilter that draw with a font.
  ///
  /// Throws an error for a negative result.
  package static func checkDrawing(
    _ font: String, _ call: () -> Int32
  ) throws(LibAVError) {
    try check(call(), "draw with", font)
  }

  /// Runs a call.
  ///
  /// Throws an error for a negative result, by which FFmpeg reports failures.
  static func check(
    _ call: @autoclosure () -> Int32, _ operation: @autoclosure () -> String,
    _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    try check(result: LibAVLog.during(call), operation(), subject())
  }

  /// Throws an error if the result of a call is negative.
  ///
  /// The call must have run in ``LibAVLog/during(_:)`` on this thread.
  static func check(
    result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    guard result < 0 else { return }
    throw LibAVError(operation(), subject(), code: result, logLine: LibAVLog.takeLine())
  }
}

extension WholeFile {
  /// Returns the error with the user's file name in place of the temporary name.
  package borrowing func errorNamingTarget(_ error: LibAVError) -> LibAVError {
    error.renamed(from: writtenPath, to: target)
  }
}
