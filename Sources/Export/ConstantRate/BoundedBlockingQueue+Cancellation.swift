// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
import OvercrankMediaCore

extension BoundedBlockingQueue {
  /// Takes the next element and polls for cancellation every 10 ms.
  ///
  /// - Returns: Nil at the end of the queue.
  /// - Throws: The error that ended the queue, or `MediaError` with `.cancelled`.
  func next(_ isCancelled: () -> Bool) throws -> Element? {
    while true {
      if isCancelled() { throw MediaError.exportCancelled }
      switch try take(within: 10) {
      case .element(let element): return element
      case .end: return nil
      case .nothingYet: continue
      }
    }
  }
}

extension DispatchGroup {
  /// Waits up to 30 ms for stopped work, to limit the delay of a cancellation.
  ///
  /// A thread in the middle of a large frame finishes later without touching any file.
  func waitShortly() { _ = wait(timeout: .now() + .milliseconds(30)) }
}
