// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization

/// A belt between two threads of an export, with room for a few things.
///
/// One side puts things on until it is full and then waits; the other takes them off in order and
/// waits while it is empty. Either side may stop it, the one with the reason, and neither then
/// waits any longer.
final class BoundedBlockingQueue<Element: Sendable>: Sendable {
  /// What a side that takes gets.
  enum Taken {
    case element(Element)
    /// There is none any more.
    case end
    /// There is none yet, and it has been waited for long enough.
    case nothingYet
  }

  private struct State {
    var elements: [Element?] = []
    var first = 0
    var isStopped = false
    var isEnded = false
    var failure: (any Error)?
  }

  private let state = Mutex(State())
  // Made empty and filled by signals: libdispatch refuses to end one below its first value.
  private let space = DispatchSemaphore(value: 0)
  private let waiting = DispatchSemaphore(value: 0)

  /// Makes a belt for so many things at a time.
  init(capacity: Int) {
    for _ in 0..<capacity { space.signal() }
  }

  /// Puts a thing on, waiting for room; false when nobody wants it any more.
  func put(_ element: Element) -> Bool {
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
  func end(_ failure: (any Error)? = nil) {
    state.withLock { state in
      guard !state.isEnded else { return }
      state.isEnded = true
      state.failure = failure
    }
    waiting.signal()
  }

  /// Tells the other side that nothing more is wanted.
  func stop() {
    state.withLock { $0.isStopped = true }
    space.signal()
    waiting.signal()
  }

  /// Takes the next thing off.
  ///
  /// - Parameter milliseconds: How long to wait for one; without end where nil.
  /// - Returns: It, or why there is none.
  /// - Throws: Why the other side ended.
  func take(within milliseconds: Int? = nil) throws -> Taken {
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
      guard state.first < state.elements.count else { return state.failure }
      taken = state.elements[state.first]
      // Let go of at once, and forgotten in bulk.
      state.elements[state.first] = nil
      state.first += 1
      if state.first > 64 {
        state.elements.removeFirst(state.first)
        state.first = 0
      }
      return nil
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
}

extension BoundedBlockingQueue {
  /// Whether the taking side wants nothing more.
  var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Takes the next thing off, asking every now and then whether it is still wanted.
  ///
  /// - Returns: Nil at the end.
  /// - Throws: Why the other side ended, or `ExportError` with `.cancelled`.
  func next(_ isCancelled: () -> Bool) throws -> Element? {
    while true {
      if isCancelled() { throw ExportError.isCancelled }
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

/// How many processors there are to share among threads, from 1; sysconf(3).
var processorCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
