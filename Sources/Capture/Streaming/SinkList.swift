// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// The sinks of a running capture thread.
///
/// Other threads may replace them.
///
/// The capture thread checks for a new list before each frame or audio block, with one atomic read.
/// The thread that replaces the sinks waits until that check.
package final class SinkList<Sink: Sendable>: Sendable {
  private struct State {
    var sinks: [Sink]
    var isClosed = false
  }

  private let state: Mutex<State>
  private let version = Atomic<Int>(1)
  private let adopted = Atomic<Int>(0)
  private let adoption = DispatchSemaphore(value: 0)
  private let changes = Mutex(())

  package init(_ sinks: [Sink]) { state = Mutex(State(sinks: sinks)) }

  /// Replaces the sinks and blocks until the capture thread uses the new ones.
  ///
  /// The capture thread does so before the next frame, after at most 0.1 s.
  ///
  /// - Parameters:
  ///   - sinks: The new sinks.
  ///   - whenReplaced: Called with the previous sinks once the capture thread no longer uses them.
  ///     Not called if the capture ends before it uses the new sinks.
  /// - Returns: True if the new sinks are in use, false if the capture has ended.
  @discardableResult
  package func set(_ sinks: [Sink], whenReplaced: ([Sink]) -> Void = { _ in }) -> Bool {
    changes.withLock { _ in
      // This reference keeps the old list until the capture thread has released it. The list is
      // then freed on this thread and not on the capture thread.
      let before: [Sink]? = state.withLock { state in
        guard !state.isClosed else { return nil }
        defer { state.sinks = sinks }
        return state.sinks
      }
      guard let before else { return false }
      defer { whenReplaced(before) }
      let target = version.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
      while adopted.load(ordering: .acquiring) < target {
        if state.withLock({ $0.isClosed }) { return false }
        _ = adoption.wait(timeout: .now() + .milliseconds(100))
      }
      return true
    }
  }

  /// Updates the capture thread's sinks.
  ///
  /// Call this on the capture thread.
  ///
  /// Another thread holds the lock only briefly, while it stores a list. If the lock is
  /// unavailable, this thread does not wait but uses the new list with the next frame.
  func update(_ sinks: inout [Sink]) {
    let version = version.load(ordering: .acquiring)
    guard version != adopted.load(ordering: .relaxed) else { return }
    let new: [Sink]?? = state.withLockIfAvailable { $0.sinks }
    guard let new, let new else { return }
    sinks = new
    adopted.store(version, ordering: .releasing)
    adoption.signal()
  }

  /// Returns the last sinks when the capture thread ends.
  ///
  /// Later replacements have no effect.
  func close(_ sinks: inout [Sink]) {
    state.withLock { state in
      state.isClosed = true
      sinks = state.sinks
    }
    adoption.signal()
  }
}
