// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import Glibc

/// libav's log, kept off the terminal: its error lines go into the error of the call that logged
/// them.
///
/// Each thread keeps the last line of its own calls. Lines that libav's worker threads log are
/// dropped, because no call on those threads can fail.
enum LibAVLog {
  /// Where a thread keeps its line: a C string that the thread owns.
  private static let line: pthread_key_t = {
    var key = pthread_key_t()
    // Without a key there are no lines; every error still has its code.
    return pthread_key_create(&key) { free($0) } == 0 ? key : .max
  }()

  /// Makes one call, or several that fail together, and forgets what was logged before.
  static func during<Result: ~Copyable>(_ call: () -> Result) -> Result {
    _ = install
    setLine(nil)
    return call()
  }

  /// Takes the last error line of this thread since ``during(_:)`` began, without surrounding
  /// space.
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

  /// Installs the log callback, once for the process.
  private static let install: Void = {
    av_log_set_callback { context, level, format, arguments in
      guard level <= AV_LOG_ERROR, let format, let arguments else { return }
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
        var printsPrefix: Int32 = 0
        guard let start = buffer.baseAddress,
          av_log_format_line2(context, level, format, arguments, start, 512, &printsPrefix) > 0
        else { return }
        let line = String(cString: start).trimmingSpace()
        if !line.isEmpty { LibAVLog.setLine(line) }
      }
    }
  }()
}

extension String {
  fileprivate func trimmingSpace() -> String {
    var view = Substring(self)
    while view.last?.isWhitespace == true { view.removeLast() }
    while view.first?.isWhitespace == true { view.removeFirst() }
    return String(view)
  }
}
