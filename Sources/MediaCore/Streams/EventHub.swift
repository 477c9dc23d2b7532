// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Broadcasts events to any number of listeners.
///
/// Safe to call from any thread.
package final class EventHub<Event: Sendable>: Sendable {
  private struct State {
    var isFinished = false
    var listeners: [Int: AsyncStream<Event>.Continuation] = [:]
    var next = 0
  }
  /// Whether the hub has a listener.
  ///
  /// Without a listener, sending an event takes no lock and copies no list of listeners.
  private let isHeard = Atomic<Bool>(false)
  private let state = Mutex(State())
  private let capacity: Int

  /// Makes a hub.
  ///
  /// - Parameter capacity: The number of unread events kept for each listener; older events are
  ///   dropped.
  package init(capacity: Int = 256) { self.capacity = capacity }

  deinit { finish() }

  /// Returns the events that are sent from now on, as a stream for one listener.
  package func events() -> AsyncStream<Event> {
    let (stream, continuation) = AsyncStream<Event>.makeStream(
      bufferingPolicy: .bufferingNewest(capacity))
    let number = state.withLock { state -> Int? in
      guard !state.isFinished else { return nil }
      state.next += 1
      state.listeners[state.next] = continuation
      isHeard.store(true, ordering: .releasing)
      return state.next
    }
    guard let number else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      self?.remove(number)
    }
    return stream
  }

  private func remove(_ number: Int) {
    state.withLock { state in
      state.listeners[number] = nil
      isHeard.store(!state.listeners.isEmpty, ordering: .releasing)
    }
  }

  /// Sends an event to all listeners.
  package func send(_ event: Event) {
    guard isHeard.load(ordering: .acquiring) else { return }
    let listeners = state.withLock { Array($0.listeners.values) }
    for listener in listeners { listener.yield(event) }
  }

  /// Ends all streams, including streams that are requested later.
  package func finish() {
    let listeners = state.withLock { state in
      state.isFinished = true
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.finish() }
  }
}
