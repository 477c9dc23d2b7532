// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization

// Mistakes that a sanitizer must find, and a lock that it must not mistake for one: shows that
// the sanitizer works before its silence is believed.

/// Counted by two threads at the same time, with a lock or without.
final class Counter: Sendable {
  let locked = Mutex(0)
  nonisolated(unsafe) var bare = 0
  let arrived = Atomic<Int>(0)

  /// Neither begins before both are there.
  func meet() {
    arrived.add(1, ordering: .relaxed)
    while arrived.load(ordering: .relaxed) < 2 { sched_yield() }
  }
}

let counter = Counter()

// Functions, because what stands in main() belongs to the main thread.
func countBare(_: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  counter.meet()
  for _ in 0..<100_000 { counter.bare += 1 }
  return nil
}

func countLocked(_: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  counter.meet()
  for _ in 0..<100_000 { counter.locked.withLock { $0 += 1 } }
  return nil
}

@main enum Probe {
  static func main() {
    switch CommandLine.arguments.dropFirst().first {
    case "race":
      onTwoThreads(countBare)
    case "lock":
      onTwoThreads(countLocked)
      precondition(counter.locked.withLock { $0 } == 200_000)
    case "overrun":
      let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: 16)
      memory.initialize(repeating: 7, count: 16)
      print(memory[CommandLine.arguments.count + 14])
      memory.deallocate()
    case "leak":
      UnsafeMutablePointer<UInt8>.allocate(capacity: 16).initialize(repeating: 7, count: 16)
    default:
      print("usage: probe race|lock|overrun|leak")
      exit(64)
    }
  }

  private static func onTwoThreads(
    _ body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
  ) {
    let threads = (0..<2).map { _ in
      var thread = pthread_t()
      pthread_create(&thread, nil, body, nil)
      return thread
    }
    for thread in threads { pthread_join(thread, nil) }
  }
}
