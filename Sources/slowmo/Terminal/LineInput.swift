// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// Reads standard input by lines, typed by a user or written by a program.
enum LineInput {
  /// Calls `whenLineEnds` for each complete line, and `atEnd` at the end of the input.
  ///
  /// Both closures run on a private dispatch queue.
  static func read(
    _ whenLineEnds: @escaping @Sendable () -> Void, atEnd: @escaping @Sendable () -> Void
  ) {
    DispatchQueue(label: "lines").async {
      var bytes = [UInt8](repeating: 0, count: 4_096)
      while true {
        let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return atEnd() }
        for byte in bytes[..<count] where byte == UInt8(ascii: "\n") { whenLineEnds() }
      }
    }
  }
}
