// SPDX-License-Identifier: Apache-2.0

import AllocationCounter
import Glibc
import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// A driver wrapper that records the capture thread's allocation count at each dequeue.
///
/// All work for one frame happens between two dequeue calls.
final class CountingDriver: FrameDriver {
  private let base: any FrameDriver
  /// The interval, in calls, at which an allocation is made on purpose; 0 for no allocations.
  private let waste: Int
  // This is written only by the capture thread, and read after that thread has ended.
  private nonisolated(unsafe) let counts: UnsafeMutableBufferPointer<Int64>
  private let visits = Atomic<Int>(0)
  /// The address of each recent frame, indexed by sequence number.
  private nonisolated(unsafe) let addresses: UnsafeMutablePointer<Atomic<UInt>>
  private static let addressCount = 1 << 14

  init(_ base: any FrameDriver, waste: Int) {
    self.base = base
    self.waste = waste
    counts = .allocate(capacity: 20_000)
    counts.initialize(repeating: 0)
    addresses = .allocate(capacity: Self.addressCount)
    for position in 0..<Self.addressCount { (addresses + position).initialize(to: Atomic(0)) }
  }

  deinit {
    counts.deallocate()
    addresses.deinitialize(count: Self.addressCount)
    addresses.deallocate()
  }

  /// The address at which the driver delivered a frame.
  func address(ofFrame number: UInt32) -> UnsafeRawPointer? {
    UnsafeRawPointer(
      bitPattern: addresses[Int(number) % Self.addressCount].load(ordering: .relaxed))
  }

  /// The number of allocations between consecutive calls.
  ///
  /// Valid after the stream has stopped.
  var requests: [Int64] {
    let count = min(visits.load(ordering: .acquiring), counts.count)
    return (0..<max(0, count - 1)).map { counts[$0 + 1] - counts[$0] }
  }

  /// Waits until the capture thread has dequeued `count` more times, or until the time limit.
  func wait(forVisits count: Int, upToMilliseconds limit: Int) {
    let goal = visits.load(ordering: .relaxed) + count
    for _ in 0..<limit where visits.load(ordering: .relaxed) < goal { usleep(1_000) }
  }

  var bufferCount: Int { base.bufferCount }
  var countsExactly: Bool { base.countsExactly }
  var waitsForTakers: Bool { base.waitsForTakers }
  func microseconds() -> Int64 { base.microseconds() }
  func start(keeping held: [Int]) throws(MediaError) { try base.start(keeping: held) }
  func requeue(_ index: Int) throws(MediaError) { try base.requeue(index) }
  func stop() { base.stop() }

  func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer? {
    let visit = visits.load(ordering: .relaxed)
    if visit < counts.count { counts[visit] = allocation_count() }
    visits.store(visit + 1, ordering: .releasing)
    if waste > 0, visit % waste == 0 {
      UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1).deallocate()
    }
    guard let buffer = try base.dequeue(timeoutMilliseconds: timeoutMilliseconds) else {
      return nil
    }
    addresses[Int(buffer.observation.sequence) % Self.addressCount].store(
      UInt(bitPattern: buffer.bytes.baseAddress), ordering: .relaxed)
    return buffer
  }

  var hasEnded: Bool { base.hasEnded }
}
