// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// Tells a running capture thread to which sinks its frames, or its sound, go from now on.
///
/// The thread looks before each of them, by one atomic read; whoever changes the sinks waits until
/// it did.
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

  /// Replaces the sinks, and returns when the capture thread uses the new ones: after a frame,
  /// or a tenth of a second where none comes.
  ///
  /// - Returns: Whether it does; false where the capture has ended.
  @discardableResult
  package func set(_ sinks: [Sink]) -> Bool {
    changes.withLock { _ in
      // Kept until the capture thread has released them: it is not to give memory back.
      let before: [Sink]? = state.withLock { state in
        guard !state.isClosed else { return nil }
        defer { state.sinks = sinks }
        return state.sinks
      }
      guard let before else { return false }
      defer { withExtendedLifetime(before) {} }
      let target = version.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
      while adopted.load(ordering: .acquiring) < target {
        if state.withLock({ $0.isClosed }) { return false }
        _ = adoption.wait(timeout: .now() + .milliseconds(100))
      }
      return true
    }
  }

  /// On the capture thread: the sinks as they are to be.
  ///
  /// The lock is free but for the moment in which someone stores a list; a thread that is late for
  /// that takes the change with the next frame.
  func update(_ sinks: inout [Sink]) {
    let version = version.load(ordering: .acquiring)
    guard version != adopted.load(ordering: .relaxed) else { return }
    let new: [Sink]?? = state.withLockIfAvailable { $0.sinks }
    guard let new, let new else { return }
    sinks = new
    adopted.store(version, ordering: .releasing)
    adoption.signal()
  }

  /// On the capture thread, at its end: the last sinks, after which there are no others.
  func close(_ sinks: inout [Sink]) {
    state.withLock { state in
      state.isClosed = true
      sinks = state.sinks
    }
    adoption.signal()
  }
}
