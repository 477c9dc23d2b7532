// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Dispatch
import Synchronization

/// A bounded FIFO queue between one producer thread and one consumer thread.
///
/// The producer blocks while the queue is full, and the consumer blocks while it is empty. The
/// producer may end the queue with an error, and the consumer may stop it. After an end or a stop,
/// neither thread blocks.
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
  // libdispatch traps if a semaphore is destroyed while its value is below its initial value. Both
  // semaphores therefore start at 0, and `init` raises `space` to the capacity.
  private let space = DispatchSemaphore(value: 0)
  private let waiting = DispatchSemaphore(value: 0)

  /// Makes a queue that holds up to `capacity` elements.
  package init(capacity: Int) {
    for _ in 0..<capacity { space.signal() }
  }

  /// Appends an element, and blocks while the queue is full.
  ///
  /// Returns true if the element was appended, and false if the consumer has stopped the queue.
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

  /// Ends the queue, with or without an error.
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
      // `end(_:)` and `stop()` signal the semaphore only once, and this call has consumed the
      // signal. This call signals again, so that the next `take()` also returns the end instead of
      // blocking.
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
