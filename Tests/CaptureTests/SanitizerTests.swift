// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankLinuxSystem
import Synchronization
import Testing

@testable import OvercrankCapture

/// Two threads count at the same time, with a lock or without a lock.
private final class Counter: Sendable {
  let locked = Mutex(0)
  nonisolated(unsafe) var bare = 0
  private let count = Atomic<Int>(0)

  /// Adds one without a lock, in turns with the other thread.
  ///
  /// The order of turns is not a synchronization, so each addition is a race. Without turns, the
  /// sanitizer may miss accesses at exactly the same time, and no race occurs if one thread ends
  /// before the other begins.
  func addAlternately(_ thread: Int) {
    while count.load(ordering: .relaxed) % 2 != thread { sched_yield() }
    bare += 1
    count.add(1, ordering: .relaxed)
  }

  func onTwoThreads(_ body: @escaping @Sendable (Counter, Int) -> Void) throws {
    let threads = try (0..<2).map { thread in try BlockingThread { body(self, thread) } }
    for thread in threads { thread.join() }
  }
}

/// Mistakes that a sanitizer must find, and a lock that it must not report as a race.
///
/// `Tests/sanitize.sh` names each mistake in `SANITIZER_MISTAKE` and requires a report of it. Only
/// then does it trust a run without reports.
struct SanitizerTests {
  private static let mistake = ProcessInfo.processInfo.environment["SANITIZER_MISTAKE"]
  private static let whyNot: Comment = "only Tests/sanitize.sh asks for mistakes"

  @Test func `The thread sanitizer accepts a counter under a lock`() throws {
    let counter = Counter()
    try counter.onTwoThreads { counter, _ in
      for _ in 0..<100_000 { counter.locked.withLock { $0 += 1 } }
    }
    #expect(counter.locked.withLock { $0 } == 200_000)
  }

  @Test(.enabled(if: mistake == "race", whyNot))
  func `The thread sanitizer reports a counter without a lock`() throws {
    let counter = Counter()
    try counter.onTwoThreads { counter, thread in
      for _ in 0..<1_000 { counter.addAlternately(thread) }
    }
    print(counter.bare)
  }

  @Test(.enabled(if: mistake == "overrun", whyNot))
  func `The address sanitizer reports a read past an allocation`() {
    let memory = Self.memory(count: 16)
    print(memory[16])
    memory.deallocate()
  }

  @Test(.enabled(if: mistake == "leak", whyNot))
  func `The address sanitizer reports memory that is never freed`() {
    for count in 1...100 { print(Self.memory(count: count)[0]) }
  }

  /// Not inlined or optimized, since the optimizer would remove the allocation.
  @inline(never) @_optimize(none)
  private static func memory(count: Int) -> UnsafeMutablePointer<UInt8> {
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
    memory.initialize(repeating: 7, count: count)
    return memory
  }
}
