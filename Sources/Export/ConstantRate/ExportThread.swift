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
