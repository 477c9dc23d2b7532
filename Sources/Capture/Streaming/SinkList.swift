// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// The sinks of a running capture thread, replaceable by other threads.
///
/// The capture thread checks for a new list before each frame or audio block, with one atomic read.
/// A thread that replaces the sinks waits for that check.
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
  /// This takes until the next frame, at most 0.1 s.
  ///
  /// - Parameters:
  ///   - sinks: The new sinks.
  ///   - whenReplaced: Called with the previous sinks once the capture thread no longer uses them.
  ///     Not called if the capture ended with them.
  /// - Returns: True if the new sinks are in use, false if the capture has ended.
  @discardableResult
  package func set(_ sinks: [Sink], whenReplaced: ([Sink]) -> Void = { _ in }) -> Bool {
    changes.withLock { _ in
      // The old list is kept until the capture thread has released it, so that memory is not freed
      // on that thread.
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
  /// The lock is held only while another thread stores a list. If it is unavailable, the change is
  /// taken over with the next frame.
  func update(_ sinks: inout [Sink]) {
    let version = version.load(ordering: .acquiring)
    guard version != adopted.load(ordering: .relaxed) else { return }
    let new: [Sink]?? = state.withLockIfAvailable { $0.sinks }
    guard let new, let new else { return }
    sinks = new
    adopted.store(version, ordering: .releasing)
    adoption.signal()
  }

  /// Returns the final sinks at the end of the capture thread.
  ///
  /// Later changes have no effect.
  func close(_ sinks: inout [Sink]) {
    state.withLock { state in
      state.isClosed = true
      sinks = state.sinks
    }
    adoption.signal()
  }
}
