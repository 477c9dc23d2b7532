// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture

/// Frames that a third thread copies while they are pushed and released.
struct FrameQueueCopyTests {
  private func push(_ number: UInt32, size: Int, to queue: FrameQueue) -> Bool {
    let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)
    return bytes.withUnsafeBytes {
      queue.push(
        QueuedFrame(
          observation: FrameObservation(sequence: number, microseconds: Int64(number)), bytes: $0))
    }
  }

  @Test func `A copy of a frame says why there is none`() throws {
    let queue = try FrameQueue(capacity: 1 << 20, largestFrame: 4_096)
    for number in 0..<4 as Range<UInt32> { #expect(push(number, size: 100, to: queue)) }
    queue.release(before: 2)
    var bytes: [UInt8] = []
    func result(_ number: Int) -> String {
      switch queue.copyFrame(number, into: &bytes) {
      case .frame(let frame): "frame \(frame.sequence)"
      case .released(let oldest): "released \(oldest)"
      case .notArrived: "not arrived"
      case .ended: "ended"
      }
    }
    #expect(result(1) == "released 2")
    #expect(result(3) == "frame 3" && bytes == [UInt8](repeating: 3, count: 100))
    #expect(result(4) == "not arrived")
    queue.close()
    #expect(result(2) == "frame 2" && bytes == [UInt8](repeating: 2, count: 100))
    #expect(result(4) == "ended")
  }

  @Test func `Copies are whole while frames are pushed and released`() throws {
    let queue = try FrameQueue(capacity: 1 << 18, largestFrame: 8_192)
    let count: UInt32 = 20_000
    let producer = try BlockingThread {
      var random = SeededGenerator(seed: 62)
      for number in 0..<count {
        let size = Int.random(in: 1...8_192, using: &random)
        while !self.push(number, size: size, to: queue) { sched_yield() }
      }
      queue.close()
    }
    let copied = Atomic<Int>(0)
    let damaged = Atomic<Int>(0)
    let reader = try BlockingThread {
      var bytes: [UInt8] = []
      var number = 0
      reading: while true {
        switch queue.copyFrame(number, into: &bytes) {
        case .frame(let frame):
          let value = UInt8(truncatingIfNeeded: frame.sequence)
          if frame.sequence != UInt32(number) || !bytes.allSatisfy({ $0 == value }) {
            damaged.add(1, ordering: .relaxed)
          }
          copied.add(1, ordering: .releasing)
          number += 1
        case .released(let oldest): number = max(oldest, number + 1)
        case .notArrived: sched_yield()
        case .ended: break reading
        }
      }
    }
    // The first frame stays until the reader has copied it.
    while copied.load(ordering: .acquiring) == 0 { sched_yield() }
    var taken: UInt32 = 0
    while queue.withNextFrame({ $0.observation.sequence == taken }) == true { taken += 1 }
    producer.join()
    reader.join()
    #expect(taken == count)
    #expect(damaged.load(ordering: .relaxed) == 0)
    #expect(copied.load(ordering: .relaxed) > 0)
  }
}
