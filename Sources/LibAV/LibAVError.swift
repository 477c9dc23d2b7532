// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore

/// A failed call into libav: what was tried, on what, and why.
package struct LibAVError: Error, Sendable, CustomStringConvertible {
  /// What was tried, worded to complete "could not … clip.mov".
  package let operation: String
  /// The file, codec or track it was tried on.
  package let subject: String
  /// The negative error number that libav gave.
  package let code: Int32
  /// The last error line that libav logged during the call, on its thread; often the only useful
  /// part.
  package let logLine: String?

  /// A failure that no line of libav's log belongs to.
  package init(_ operation: String, _ subject: String, code: Int32) {
    self.init(operation, subject, code: code, logLine: nil)
  }

  /// The failure of a system call, as libav would number it.
  package init(_ error: SystemError) {
    self.init(error.operation, error.subject, code: -error.errorNumber, logLine: nil)
  }

  /// Does work on a file that is written with libav's help; its failures are libav's, too.
  package static func converting<Result: ~Copyable>(
    _ work: () throws(SystemError) -> Result
  ) throws(LibAVError) -> Result {
    do throws(SystemError) { return try work() } catch { throw LibAVError(error) }
  }

  /// The same failure, told of another subject, in libav's own line too.
  package func renamed(from subject: String, to name: String) -> LibAVError {
    LibAVError(
      operation, self.subject == subject ? name : self.subject, code: code,
      logLine: logLine?.replacing(subject, with: name))
  }

  /// A failure of a call that ran in ``LibAVLog/during(_:)``, where `logLine` is what it left.
  init(_ operation: String, _ subject: String, code: Int32, logLine: String?) {
    self.operation = operation
    self.subject = subject
    self.code = code
    self.logLine = logLine
  }

  /// Why, in libav's words.
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

  /// The failed call.
  package var cause: MediaError.Cause {
    MediaError.Cause(operation, on: subject, errorNumber: systemErrorNumber)
  }

  /// The errno behind the code, where it is one: `AVERROR(e)` is `-e`.
  package var systemErrorNumber: Int32? { code < 0 && code > -4096 ? -code : nil }

  /// Whether the bytes themselves are to blame: another picture may well be read.
  package var isInvalidData: Bool { code == CFFmpeg_INVALIDDATA }

  /// Whether a ``ReadWatch`` ended the call because all reading is to end.
  package var isCancelled: Bool { code == CFFmpeg_EXIT }

  /// The name of the format in which a file is, where that is none that is read.
  package var unsupportedFormat: String? {
    // "Format not on whitelist …", behind "[hls @ 0x…]".
    guard let logLine, logLine.contains("not on whitelist"), logLine.hasPrefix("[") else {
      return nil
    }
    return logLine.dropFirst().split(whereSeparator: { " ,@]".contains($0) }).first.map(String.init)
  }

  /// Whether the disk, or what this user may take of it, is full.
  package var isDiskFull: Bool {
    systemErrorNumber.map { [ENOSPC, EDQUOT, EFBIG].contains($0) } ?? false
  }

  /// Throws if the result of a call that looks into data is negative; -1, which some of libav's
  /// decoders return for damaged data, is not an errno there.
  ///
  /// The call ran in ``LibAVLog/during(_:)`` on this thread.
  static func checkData(
    result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    try check(result: result == -1 ? CFFmpeg_INVALIDDATA : result, operation(), subject())
  }

  /// Makes a call, and throws if its result is negative, which is how libav reports failure.
  static func check(
    _ call: @autoclosure () -> Int32, _ operation: @autoclosure () -> String,
    _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    try check(result: LibAVLog.during(call), operation(), subject())
  }

  /// Throws if the result of a call is negative; the call ran in ``LibAVLog/during(_:)`` on this
  /// thread.
  static func check(
    result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    guard result < 0 else { return }
    throw LibAVError(operation(), subject(), code: result, logLine: LibAVLog.takeLine())
  }
}

extension WholeFile {
  /// A failure to write the file, told of the name that the user gave.
  package borrowing func told(_ error: LibAVError) -> LibAVError {
    error.renamed(from: writtenPath, to: target)
  }
}
