// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture

struct FrameQueueTests {
  private func frame(_ number: UInt32, _ bytes: UnsafeRawBufferPointer) -> QueuedFrame {
    QueuedFrame(
      observation: FrameObservation(sequence: number, microseconds: Int64(number)), bytes: bytes)
  }

  @Test func `A wrapping frame queue keeps the order and bytes of frames`()
    async throws
  {
    let queue = try FrameQueue(capacity: 1 << 20, largestFrame: 400_000)
    let count: UInt32 = 20_000
    let excess = Atomic<Int>(0)
    let writer = try BlockingThread {
      var random = SeededGenerator(seed: 240)
      var payload = [UInt8](repeating: 0, count: 400_000)
      for number in 0..<count {
        // Most frames are small. A few take nearly half the queue.
        let size = Int.random(
          in: 0...(number % 97 == 0 ? 400_000 : 3_000), using: &random)
        for position in stride(from: 0, to: size, by: 64) {
          payload[position] = UInt8(truncatingIfNeeded: Int(number) &+ position)
        }
        payload.withUnsafeBytes { bytes in
          let frame = self.frame(number, UnsafeRawBufferPointer(rebasing: bytes.prefix(size)))
          while !queue.push(frame) { sched_yield() }
        }
        if queue.boundBytes > queue.capacity { excess.add(1, ordering: .relaxed) }
      }
      queue.close()
    }
    // The reported fill level must never exceed the capacity. Otherwise, a program would skip
    // frames although the queue is empty.
    let observer = try BlockingThread {
      while !queue.isClosed {
        if queue.boundBytes > queue.capacity { excess.add(1, ordering: .relaxed) }
        sched_yield()
      }
    }
    var next: UInt32 = 0
    var damaged = 0
    while true {
      let number = queue.withNextFrame { frame -> UInt32 in
        for position in stride(from: 0, to: frame.bytes.count, by: 64)
        where frame.bytes[position]
          != UInt8(truncatingIfNeeded: Int(frame.observation.sequence) &+ position)
        {
          damaged += 1
        }
        return frame.observation.sequence
      }
      guard let number else { break }
      #expect(number == next)
      next = number + 1
    }
    writer.join()
    observer.join()
    #expect(excess.load(ordering: .relaxed) == 0)
    #expect(next == count)
    #expect(damaged == 0)
    // A second call also reports the end of the frames.
    #expect(queue.withNextFrame { $0.observation.sequence } == nil)
  }

  @Test func `A full frame queue rejects frames until a frame is removed`() throws {
    let queue = try FrameQueue(capacity: 1 << 20, largestFrame: 200_000)
    let payload = [UInt8](repeating: 1, count: 200_000)
    var pushed: UInt32 = 0
    payload.withUnsafeBytes { bytes in
      while queue.push(frame(pushed, bytes)) { pushed += 1 }
    }
    #expect(pushed == 5)
    #expect(queue.withNextFrame { $0.observation.sequence } == 0)
    #expect(payload.withUnsafeBytes { queue.push(frame(pushed, $0)) })
    #expect(payload.withUnsafeBytes { !queue.push(frame(pushed, $0)) })
    // A frame larger than the whole queue never fits and never blocks.
    let huge = [UInt8](repeating: 1, count: 2 << 20)
    #expect(huge.withUnsafeBytes { !queue.push(frame(9, $0)) })
  }

  @Test func `A frame queue reuses the same memory after each emptying`() throws {
    let queue = try FrameQueue(capacity: 64 << 20, largestFrame: 100_000)
    let payload = [UInt8](repeating: 1, count: 100_000)
    var addresses: Set<Int> = []
    for number in 0..<2_000 as Range<UInt32> {
      payload.withUnsafeBytes { #expect(queue.push(frame(number, $0))) }
      // The frame queue allocates memory in units of 64 bytes.
      #expect(queue.boundBytes == 100_032)
      let position = queue.withNextFrame { frame -> Int in
        #expect(frame.observation.sequence == number)
        return Int(bitPattern: frame.bytes.baseAddress)
      }
      if let position { addresses.insert(position) }
    }
    #expect(queue.boundBytes == 0)
    #expect(addresses.count == 1)
    // A burst without a reader can still use the whole queue.
    var count = 0
    while payload.withUnsafeBytes({ queue.push(frame(0, $0)) }) { count += 1 }
    #expect(count > 400)
  }
}
