// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import Synchronization

/// Frames on loan, or notes of dropped ones, on their way from the capture thread to one other.
///
/// Neither side waits or asks for memory: each owns one counter and reads the other's.
final class LoanRing: Sendable {
  /// A frame that is lent, or why one is not.
  struct Entry {
    let observation: FrameObservation
    let exposure: ExposureInForce
    let passage: Passage
  }

  enum Passage {
    case lent(BufferPool.Loan)
    case dropped(FrameDropReason)
  }

  let capacity: Int
  // Entries between `head` and `tail` are the taker's, the others the pusher's.
  private nonisolated(unsafe) let entries: UnsafeMutablePointer<Entry?>
  private let head = Atomic<Int>(0)
  private let tail = Atomic<Int>(0)

  init(capacity: Int) {
    self.capacity = capacity
    entries = .allocate(capacity: capacity)
    entries.initialize(repeating: nil, count: capacity)
  }

  deinit {
    entries.deinitialize(count: capacity)
    entries.deallocate()
  }

  /// How many entries wait.
  var count: Int { head.load(ordering: .acquiring) - tail.load(ordering: .acquiring) }

  /// Adds an entry; false where there is no room.
  func push(_ entry: Entry) -> Bool {
    let head = head.load(ordering: .relaxed)
    guard head - tail.load(ordering: .acquiring) < capacity else { return false }
    entries[head % capacity] = entry
    self.head.store(head + 1, ordering: .releasing)
    return true
  }

  /// Whether the oldest entry, if there is one, is a note.
  var beginsWithNote: Bool {
    guard count > 0 else { return false }
    if case .dropped? = entries[tail.load(ordering: .relaxed) % capacity]?.passage { return true }
    return false
  }

  /// The oldest entry, or nil.
  func pop() -> Entry? {
    let tail = tail.load(ordering: .relaxed)
    guard head.load(ordering: .acquiring) > tail else { return nil }
    let entry = entries[tail % capacity]
    self.tail.store(tail + 1, ordering: .releasing)
    return entry
  }
}
