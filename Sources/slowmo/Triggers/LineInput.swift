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
      var byte: UInt8 = 0
      while true {
        let count = Glibc.read(STDIN_FILENO, &byte, 1)
        if count < 0, errno == EINTR { continue }
        guard count == 1 else { return atEnd() }
        if byte == UInt8(ascii: "\n") { whenLineEnds() }
      }
    }
  }
}
