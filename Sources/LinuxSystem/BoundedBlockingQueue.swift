// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Dispatch
import Synchronization

/// A bounded FIFO queue between one producer thread and one consumer thread.
///
/// The producer blocks while the queue is full, the consumer while the queue is empty. The producer
/// may end the queue with an error, the consumer may stop it. Neither side blocks afterwards.
package final class BoundedBlockingQueue<Element: Sendable>: Sendable {
  /// The result of ``take(within:)``.
  package enum Taken {
    case element(Element)
    /// The queue has ended or was stopped.
    case end
    /// The timeout passed before an element arrived.
    case nothingYet
  }

  private struct State {
    var elements: Deque<Element> = []
    var isStopped = false
    var isEnded = false
    var failure: (any Error)?
  }

  private let state = Mutex(State())
  // The semaphore starts at zero and is filled by signals. libdispatch traps when a semaphore is
  // destroyed below its initial value.
  private let space = DispatchSemaphore(value: 0)
  private let waiting = DispatchSemaphore(value: 0)

  /// Makes a queue that holds up to `capacity` elements.
  package init(capacity: Int) {
    for _ in 0..<capacity { space.signal() }
  }

  /// Appends an element and blocks while the queue is full; false once the consumer has stopped.
  package func put(_ element: Element) -> Bool {
    space.wait()
    let isStopped = state.withLock { state in
      if !state.isStopped { state.elements.append(element) }
      return state.isStopped
    }
    guard !isStopped else {
      space.signal()
      return false
    }
    waiting.signal()
    return true
  }

  /// Ends the queue, with an error or without.
  ///
  /// Called by the producer.
  package func end(_ failure: (any Error)? = nil) {
    state.withLock { state in
      guard !state.isEnded else { return }
      state.isEnded = true
      state.failure = failure
    }
    waiting.signal()
  }

  /// Stops the queue.
  ///
  /// Called by the consumer.
  package func stop() {
    state.withLock { $0.isStopped = true }
    space.signal()
    waiting.signal()
  }

  /// Removes and returns the next element.
  ///
  /// - Parameter milliseconds: The timeout; nil waits without a limit.
  /// - Returns: The element, the end of the queue, or a timeout.
  /// - Throws: The error with which the producer ended the queue.
  package func take(within milliseconds: Int? = nil) throws -> Taken {
    if let milliseconds {
      guard waiting.wait(timeout: .now() + .milliseconds(milliseconds)) == .success else {
        return .nothingYet
      }
    } else {
      waiting.wait()
    }
    var taken: Element?
    let failure = state.withLock { state -> (any Error)? in
      if state.isStopped { return nil }
      taken = state.elements.popFirst()
      return taken == nil ? state.failure : nil
    }
    guard let taken else {
      // Another take() must also see the end of the queue instead of blocking.
      waiting.signal()
      if let failure { throw failure }
      return .end
    }
    space.signal()
    return .element(taken)
  }

  /// Whether the consumer has stopped the queue and takes no more elements.
  package var isStopped: Bool { state.withLock { $0.isStopped } }
}
