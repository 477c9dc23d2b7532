// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc

/// Captures FFmpeg's log.
///
/// Nothing is printed, and errors contain the line that explains them.
///
/// For each thread, the last line of its own calls is kept. Lines from FFmpeg's worker threads are
/// dropped.
enum LibAVLog {
  /// The thread-specific key of the thread's last log line, a C string that the thread owns.
  private static let line: pthread_key_t = {
    var key = pthread_key_t()
    // If no thread-specific key is available, log lines are dropped. Errors then contain only their
    // codes.
    return pthread_key_create(&key) { free($0) } == 0 ? key : .max
  }()

  /// Clears the thread's last log line, and then runs FFmpeg calls that may log a new one.
  static func during<Result: ~Copyable>(_ call: () -> Result) -> Result {
    _ = install
    setLine(nil)
    return call()
  }

  /// Returns the last error line of this thread since ``during(_:)`` started, trimmed, and clears
  /// the line.
  static func takeLine() -> String? {
    guard let text = pthread_getspecific(line) else { return nil }
    defer { setLine(nil) }
    return String(cString: text.assumingMemoryBound(to: CChar.self))
  }

  private static func setLine(_ text: String?) {
    let old = pthread_getspecific(line)
    let new = text.flatMap { strdup($0) }
    guard old != nil || new != nil else { return }
    if pthread_setspecific(line, new) == 0 { free(old) } else { free(new) }
  }

  /// Installs the log callback, once in each process.
  private static let install: Void = {
    av_log_set_callback { context, level, format, arguments in
      guard level <= AV_LOG_ERROR, let format, let arguments else { return }
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
        // The prefix is needed, because in the line about an unsupported format, only the prefix
        // names the format.
        var printsPrefix: Int32 = 1
        guard let start = buffer.baseAddress,
          av_log_format_line2(context, level, format, arguments, start, 512, &printsPrefix) > 0
        else { return }
        let text = String(cString: start).trimmingSpace()
        let line = text.contains("not on whitelist") ? text : text.withoutContext
        if !line.isEmpty { LibAVLog.setLine(line) }
      }
    }
  }()
}

extension String {
  /// This log line without prefixes such as `[h264 @ 0x55d0c0] `.
  fileprivate var withoutContext: String {
    var view = Substring(self)
    while view.hasPrefix("["), let end = view.firstRange(of: "] "),
      view[..<end.lowerBound].contains(" @ ")
    {
      view = view[end.upperBound...]
    }
    return String(view)
  }

  fileprivate func trimmingSpace() -> String {
    var view = Substring(self)
    while view.last?.isWhitespace == true { view.removeLast() }
    while view.first?.isWhitespace == true { view.removeFirst() }
    return String(view)
  }
}
