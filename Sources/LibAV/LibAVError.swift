// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc
package import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// A failed call into libav: what was tried, on what, and why.
package struct LibAVError: Error, Sendable, CustomStringConvertible {
  /// What was tried, worded to complete "could not … clip.mov".
  package let operation: String
  /// The file, codec or track it was tried on.
  package let subject: String
  /// The negative error number that libav gave.
  package let code: Int32
  /// The last line libav logged about it; often the only useful part.
  package let logLine: String?

  package init(_ operation: String, _ subject: String, code: Int32) {
    self.operation = operation
    self.subject = subject
    self.code = code
    logLine = LibAVLog.takeLastLine()
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

  private init(_ operation: String, _ subject: String, code: Int32, logLine: String?) {
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

  /// Throws if `result` of a call that looks into data is negative; -1, which some of libav's
  /// decoders answer for what is damaged, is no errno there.
  static func checkData(
    _ result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(LibAVError) {
    try check(result == -1 ? CFFmpeg_INVALIDDATA : result, operation(), subject())
  }

  /// Throws if `result` is negative, which is how libav reports failure.
  @discardableResult
  static func check(
    _ result: Int32, _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(LibAVError) -> Int32 {
    guard result < 0 else { return result }
    throw LibAVError(operation(), subject(), code: result)
  }
}

/// libav's log, kept off the terminal: its last error line goes into the next error instead.
enum LibAVLog {
  private static let lastLine = Mutex<String?>(nil)

  /// Installs the log callback, once for the process; touching it is enough.
  static let install: Void = {
    av_log_set_callback { context, level, format, arguments in
      guard level <= AV_LOG_ERROR, let format, let arguments else { return }
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
        var printsPrefix: Int32 = 0
        guard let start = buffer.baseAddress,
          av_log_format_line2(context, level, format, arguments, start, 512, &printsPrefix) > 0
        else { return }
        let line = String(cString: start).trimmingSpace()
        if !line.isEmpty { LibAVLog.lastLine.withLock { $0 = line } }
      }
    }
  }()

  /// The last error line since the last call, without surrounding space.
  static func takeLastLine() -> String? {
    lastLine.withLock { line in
      defer { line = nil }
      return line
    }
  }
}

extension String {
  fileprivate func trimmingSpace() -> String {
    var view = Substring(self)
    while view.last?.isWhitespace == true { view.removeLast() }
    while view.first?.isWhitespace == true { view.removeFirst() }
    return String(view)
  }
}

extension WholeFile {
  /// A failure to write the file, told of the name that the user gave.
  package borrowing func told(_ error: LibAVError) -> LibAVError {
    error.renamed(from: writtenPath, to: target)
  }
}
