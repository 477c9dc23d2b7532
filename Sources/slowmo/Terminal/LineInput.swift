// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// The lines of standard input: a person's Enter key, or those that a program writes.
enum LineInput {
  /// Calls a closure at the end of each line, as it is read, on a thread of its own.
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
