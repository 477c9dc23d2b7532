// SPDX-License-Identifier: Apache-2.0

package import OvercrankLinuxSystem
package import OvercrankMediaCore

extension BlockingThread {
  /// Starts a capture thread.
  ///
  /// - Parameters:
  ///   - urgency: The scheduling priority of the thread.
  ///   - body: The closure that the thread runs once.
  /// - Returns: The thread. The caller must join or detach it.
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot create a thread.
  package static func started(
    urgency: Urgency = .ordinary, _ body: @escaping @Sendable () -> Void
  ) throws(MediaError) -> BlockingThread {
    try CallStage.resources.converting { () throws(CallFailure) in
      try BlockingThread(urgency: urgency, body)
    }
  }
}
