// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
import OvercrankMediaCore

extension BoundedBlockingQueue {
  /// Takes the next thing off, asking every now and then whether it is still wanted.
  ///
  /// - Returns: Nil at the end.
  /// - Throws: Why the other side ended, or `MediaError` with `.cancelled`.
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
  /// Waits for work that was told to stop, but no longer than a caller who cancelled may have to;
  /// what is in the middle of a large picture ends by itself, and touches no file.
  func waitShortly() { _ = wait(timeout: .now() + .milliseconds(30)) }
}
