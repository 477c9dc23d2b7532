// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The threads of an export.
///
/// They inherit the scheduling of the thread that exports, as the threads of a dispatch queue do not.
enum ExportThread {
  /// Starts a thread that a group waits for.
  ///
  /// - Parameters:
  ///   - group: The group.
  ///   - failed: Called with the error if the system cannot create a thread.
  ///   - body: The work.
  static func start(
    in group: DispatchGroup, failed: (any Error) -> Void, _ body: @escaping @Sendable () -> Void
  ) {
    group.enter()
    do throws(CallFailure) {
      try BlockingThread {
        body()
        group.leave()
      }.detach()
    } catch {
      failed(error)
      group.leave()
    }
  }
}

extension BoundedBlockingQueue {
  /// Waits for the next element, and checks for cancellation every 10 ms meanwhile.
  ///
  /// - Returns: The element, or nil at the end of the queue.
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
  /// Waits at most 30 ms for a stopped thread to end, so that a cancelled export returns soon.
  ///
  /// A thread that is processing a large frame may end only after this call has returned. That is
  /// safe, because these threads write no files.
  func waitShortly() { _ = wait(timeout: .now() + .milliseconds(30)) }
}
