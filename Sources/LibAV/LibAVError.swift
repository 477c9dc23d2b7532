// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// A failed FFmpeg call: the operation, its subject and the error code.
package struct LibAVError: Error, Sendable, CustomStringConvertible {
  /// The operation, as a phrase that completes "could not … clip.mov".
  package let operation: String
  /// The file, codec or track that the call worked on.
  package let subject: String
  /// The negative error code from FFmpeg.
  package let code: Int32
  /// The last error that FFmpeg logged during the call, on the same thread.
  ///
  /// It often explains the failure better than the code does.
  package let logLine: String?

  /// Makes an error without a log line.
  package init(_ operation: String, _ subject: String, code: Int32) {
    self.init(operation, subject, code: code, logLine: nil)
  }

  /// Makes an error from a failed system call, with FFmpeg's error numbering.
  package init(_ error: SystemError) {
    self.init(error.operation, error.subject, code: -error.errorNumber, logLine: nil)
  }

  /// Runs file operations and converts their `SystemError` to a `LibAVError`.
  package static func converting<Result: ~Copyable>(
    _ work: () throws(SystemError) -> Result
  ) throws(LibAVError) -> Result {
    do throws(SystemError) { return try work() } catch { throw LibAVError(error) }
  }

  /// Returns the same error with another name for the subject, also in the log line.
  package func renamed(from subject: String, to name: String) -> LibAVError {
    LibAVError(
      operation, self.subject == subject ? name : self.subject, code: code,
      logLine: logLine?.replacing(subject, with: name))
  }

  /// Makes the error of a call inside ``LibAVLog/during(_:)``, with the line that the call logged.
  init(_ operation: String, _ subject: String, code: Int32, logLine: String?) {
    self.operation = operation
    self.subject = subject
    self.code = code
    self.logLine = logLine
  }

  /// The reason in FFmpeg's own text (av_strerror).
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

  /// The failed call, for the public error.
  package var cause: MediaError.Cause {
    MediaError.Cause(operation, on: subject, errorNumber: systemErrorNumber)
  }

  /// The errno, if the code stands for one: `AVERROR(e)` is `-e`.
  ///
  /// Nil for FFmpeg's own codes.
  package var systemErrorNumber: Int32? { code < 0 && code > -4096 ? -code : nil }

  /// Whether the data is invalid.
  ///
  /// Other frames of the file may still be readable.
  package var isInvalidData: Bool { code == CFFmpeg_INVALIDDATA }

  /// Whether a ``ReadWatch`` interrupted the call, because all reading was cancelled.
  package var isCancelled: Bool { code == CFFmpeg_EXIT }

  /// Whether only a part of the data is damaged, so that reading may go on behind it.
  ///
  /// An error of the system, such as one of the disk, is none, and neither is a cancellation: the
  /// next call would fail in the same way.
  package var isDamage: Bool { systemErrorNumber == nil && !isCancelled }

  /// The name of the file's format if this format is not accepted; otherwise nil.
  package var unsupportedFormat: String? {
    // libavformat logs "[hls @ 0x…] Format not on whitelist …", with the format's name in brackets.
    guard let logLine, logLine.contains("not on whitelist"), logLine.hasPrefix("[") else {
      return nil
    }
    return logLine.dropFirst().split(whereSeparator: { " ,@]".contains($0) }).first.map(String.init)
  }

  /// Whether the disk or the user's quota is full, or the file is too large.
  package var isDiskFull: Bool {
    systemErrorNumber.map { [ENOSPC, EDQUOT, EFBIG].contains($0) } ?? false
  }

  /// Throws if the result of a call that parses data is negative.
  ///
  /// Some decoders return -1 for invalid data. It would otherwise be taken for an errno, so it
  /// counts as invalid data.
  ///
  /// The call must have run in ``LibAVLog/during(_:)`` on this thread.
  static func checkData(
    result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    try check(result: result == -1 ? CFFmpeg_INVALIDDATA : result, operation(), subject())
  }

  /// Makes calls of libavfilter that draw with a font, and throws for a negative result.
  package static func checkDrawing(
    _ font: String, _ call: () -> Int32
  ) throws(LibAVError) {
    try check(call(), "draw with", font)
  }

  /// Makes a call and throws for a negative result, which is how FFmpeg reports failure.
  static func check(
    _ call: @autoclosure () -> Int32, _ operation: @autoclosure () -> String,
    _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    try check(result: LibAVLog.during(call), operation(), subject())
  }

  /// Throws if the result is negative.
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
  /// Returns the error with the user's file name instead of the temporary name.
  package borrowing func errorNamingTarget(_ error: LibAVError) -> LibAVError {
    error.renamed(from: writtenPath, to: target)
  }
}
