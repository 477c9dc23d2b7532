// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Dispatch
import Synchronization

/// A queue between two threads, with room for a few elements.
///
/// One side puts things on until it is full and then waits; the other takes them off in order and
/// waits while it is empty. Either side may stop it, the one with the reason, and neither then
/// waits any longer.
package final class BoundedBlockingQueue<Element: Sendable>: Sendable {
  /// What a side that takes gets.
  package enum Taken {
    case element(Element)
    /// There is none any more.
    case end
    /// There is none yet, and it has been waited for long enough.
    case nothingYet
  }

  private struct State {
    var elements: Deque<Element> = []
    var isStopped = false
    var isEnded = false
    var failure: (any Error)?
  }

  private let state = Mutex(State())
  // Made empty and filled by signals: libdispatch refuses to end one below its first value.
  private let space = DispatchSemaphore(value: 0)
  private let waiting = DispatchSemaphore(value: 0)

  /// Makes a queue for so many things at a time.
  package init(capacity: Int) {
    for _ in 0..<capacity { space.signal() }
  }

  /// Puts a thing on, waiting for room; false when nobody wants it any more.
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

  /// Tells the other side that nothing follows, or why.
  package func end(_ failure: (any Error)? = nil) {
    state.withLock { state in
      guard !state.isEnded else { return }
      state.isEnded = true
      state.failure = failure
    }
    waiting.signal()
  }

  /// Tells the other side that nothing more is wanted.
  package func stop() {
    state.withLock { $0.isStopped = true }
    space.signal()
    waiting.signal()
  }

  /// Takes the next thing off.
  ///
  /// - Parameter milliseconds: How long to wait for one; without end where nil.
  /// - Returns: It, or why there is none.
  /// - Throws: Why the other side ended.
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
      // For whoever asks again.
      waiting.signal()
      if let failure { throw failure }
      return .end
    }
    space.signal()
    return .element(taken)
  }

  /// Whether the taking side wants nothing more.
  package var isStopped: Bool { state.withLock { $0.isStopped } }
}
