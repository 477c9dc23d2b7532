// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import Synchronization
import TestSupport
import Testing

@testable import OvercrankCapture

/// Frames that another thread reads by number while they are pushed and released.
struct FrameQueueReaderTests {
  /// A frame as the tests compare it: its sequence number and its bytes.
  private struct Frame: Hashable {
    var sequence: UInt32
    var bytes: [UInt8]

    init(_ sequence: UInt32, _ bytes: [UInt8]) { (self.sequence, self.bytes) = (sequence, bytes) }

    init(_ frame: QueuedFrame) { self.init(frame.observation.sequence, [UInt8](frame.bytes)) }
  }

  /// The result of a read, for a comparison.
  private enum Result: Hashable {
    case frame(Frame)
    case released(oldest: Int)
    case notArrived
    case ended

    init(_ reading: FrameQueue.Reading<Frame>) {
      self =
        switch reading {
        case .frame(let frame): .frame(frame)
        case .released(let oldest): .released(oldest: oldest)
        case .notArrived: .notArrived
        case .ended: .ended
        }
    }
  }

  /// A queue that keeps every frame in an array, as the expectation for ``FrameQueue``.
  private struct Model {
    var frames: [Frame] = []
    var start = 0
    var isClosed = false

    mutating func release(before end: Int) { start = max(start, min(end, frames.count)) }

    func read(_ number: Int) -> Result {
      if number < start { return .released(oldest: start) }
      if number < frames.count { return .frame(frames[number]) }
      return isClosed ? .ended : .notArrived
    }
  }

  private func push(_ frame: Frame, to queue: FrameQueue) -> Bool {
    var observation = FrameObservation(
      sequence: frame.sequence, microseconds: Int64(frame.sequence))
    if frame.bytes.isEmpty { observation.outcome = .corrupt }
    return frame.bytes.withUnsafeBytes {
      queue.push(QueuedFrame(observation: observation, bytes: $0))
    }
  }

  private func push(_ number: UInt32, size: Int, to queue: FrameQueue) -> Bool {
    push(
      Frame(number, [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)), to: queue)
  }

  private func read(_ number: Int, of queue: FrameQueue) -> Result {
    Result(queue.reader.withFrame(number) { Frame($0) })
  }

  @Test func `A read without a frame reports the reason`() throws {
    let queue = try FrameQueue(capacity: 1 << 20, largestFrame: 4_096)
    for number in 0..<4 as Range<UInt32> { #expect(push(number, size: 100, to: queue)) }
    queue.release(before: 2)
    #expect(queue.reader.numbers == 2..<4)
    #expect(read(1, of: queue) == .released(oldest: 2))
    #expect(read(3, of: queue) == .frame(Frame(3, [UInt8](repeating: 3, count: 100))))
    #expect(read(4, of: queue) == .notArrived)
    queue.close()
    #expect(read(2, of: queue) == .frame(Frame(2, [UInt8](repeating: 2, count: 100))))
    #expect(read(4, of: queue) == .ended)
    queue.release(before: .max)
    #expect(queue.reader.numbers == 4..<4)
    #expect(read(3, of: queue) == .released(oldest: 4))
    #expect(read(4, of: queue) == .ended)
  }

  @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
  func `Reads agree with a model of the queue`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    // The queue is small, so it is often full, and all its memory is used again.
    let queue = try FrameQueue(capacity: 1 << 16, largestFrame: 8_192)
    var model = Model()
    var refusedCount = 0
    for _ in 0..<20_000 {
      let near = Int.random(in: (model.start - 3)...(model.frames.count + 3), using: &random)
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<40:
        let size = Bool.random(using: &random) ? Int.random(in: 0...8_192, using: &random) : 64
        let frame = Frame(
          UInt32(model.frames.count),
          [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: size))
        if push(frame, to: queue) { model.frames.append(frame) } else { refusedCount += 1 }
      case 40..<60:
        // Mostly the oldest frames, so that the queue stays nearly full.
        let end = Int.random(in: 0..<50, using: &random) == 0 ? near : model.start + 1
        queue.release(before: end)
        model.release(before: end)
      case 60 where Int.random(in: 0..<500, using: &random) == 0:
        queue.close()
        model.isClosed = true
      default: #expect(read(near, of: queue) == model.read(near))
      }
      #expect(queue.reader.numbers == model.start..<model.frames.count)
      if model.isClosed { break }
    }
    for number in (model.start - 3)...(model.frames.count + 3) {
      #expect(read(number, of: queue) == model.read(number))
    }
    #expect(model.isClosed || refusedCount > 100)
  }

  @Test func `A frame stays whole if it is released while it is read`() throws {
    let queue = try FrameQueue(capacity: 1 << 16, largestFrame: 4_096)
    var count: UInt32 = 0
    while push(count, size: 4_096, to: queue) { count += 1 }
    let reading = queue.reader.withFrame(3) { frame in
      queue.release(before: Int(count) - 1)
      #expect(queue.startNumber == Int(count) - 1 && queue[3] == nil)
      // The memory of the frames before the one that is read is free again.
      while push(count, size: 4_096, to: queue) { count += 1 }
      return Frame(frame)
    }
    #expect(Result(reading) == .frame(Frame(3, [UInt8](repeating: 3, count: 4_096))))
    #expect(Result(queue.reader.withFrame(3) { Frame($0) }) == .released(oldest: queue.startNumber))
    // The next release also frees the memory that was read.
    let before = queue.boundBytes
    queue.release(before: queue.startNumber)
    #expect(queue.boundBytes < before)
    while !queue.isEmpty, let frame = queue.withNextFrame({ Frame($0) }) {
      #expect(frame.bytes.allSatisfy { $0 == UInt8(truncatingIfNeeded: frame.sequence) })
    }
  }

  @Test func `A reader does not make a full queue drop all its frames`() throws {
    let queue = try FrameQueue(capacity: 1 << 18, largestFrame: 8_192)
    var number: UInt32 = 0
    while !queue.isNearlyFull, push(number, size: 4_096, to: queue) { number += 1 }
    try #require(queue.isNearlyFull)
    let count = queue.endNumber
    let oldest = queue.startNumber
    var end = oldest
    _ = queue.reader.withFrame(oldest) { _ in
      // The consumer drops the oldest frames of a nearly full queue.
      while queue.isNearlyFull, !queue.isReleasePending, end < count {
        end += 1
        queue.release(before: end)
      }
    }
    #expect(end - oldest == 1)
    queue.release(before: end)
    #expect(!queue.isReleasePending)
  }

  @Test func `Two readers get whole frames while frames come and go`() throws {
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
    let readCount = Atomic<Int>(0)
    let latest = Atomic<Int>(-1)
    let damagedCount = Atomic<Int>(0)
    let readers = try (0..<2).map { _ in
      try BlockingThread {
        var number = 0
        while true {
          let reading = queue.reader.withFrame(number) { frame in
            let value = UInt8(truncatingIfNeeded: frame.observation.sequence)
            return frame.observation.sequence == UInt32(number)
              && frame.bytes.allSatisfy { $0 == value }
          }
          switch reading {
          case .frame(let isWhole):
            if !isWhole { damagedCount.add(1, ordering: .relaxed) }
            readCount.add(1, ordering: .relaxed)
            latest.max(number, ordering: .releasing)
            number += 1
          case .released(let oldest):
            if oldest <= number { damagedCount.add(1, ordering: .relaxed) }
            number = oldest
          case .notArrived: sched_yield()
          case .ended: return
          }
        }
      }
    }
    var taken: UInt32 = 0
    while true {
      // Sometimes the next frame stays until a reader has read it or a later one.
      if taken < count, taken.isMultiple(of: count / 20) {
        while latest.load(ordering: .acquiring) < Int(taken) {
          // A reader may have kept memory of the frames before. Only this thread frees it, and a full
          // queue takes no frame.
          queue.release(before: Int(taken))
          sched_yield()
        }
      }
      guard queue.withNextFrame({ $0.observation.sequence == taken }) == true else { break }
      taken += 1
    }
    producer.join()
    for reader in readers { reader.join() }
    #expect(taken == count)
    #expect(damagedCount.load(ordering: .relaxed) == 0)
    #expect(readCount.load(ordering: .relaxed) >= 20)
  }
}
