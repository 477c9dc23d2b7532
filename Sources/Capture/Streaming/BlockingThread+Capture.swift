// SPDX-License-Identifier: Apache-2.0

package import OvercrankLinuxSystem
package import OvercrankMediaCore

extension BlockingThread {
  /// Starts a thread of a capture.
  ///
  /// - Parameters:
  ///   - urgency: Whether it asks to run before ordinary ones.
  ///   - body: What it runs once.
  /// - Returns: The thread, to be joined or detached.
  /// - Throws: `MediaError` with `.outOfMemory` when the system has no thread left.
  package static func started(
    urgency: Urgency = .ordinary, _ body: @escaping @Sendable () -> Void
  ) throws(MediaError) -> BlockingThread {
    try MediaError.exhausting { () throws(SystemError) in
      try BlockingThread(urgency: urgency, body)
    }
  }
}
