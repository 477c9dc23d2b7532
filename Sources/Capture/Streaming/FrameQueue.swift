// SPDX-License-Identifier: Apache-2.0

import Dispatch
package import OvercrankFrameAccounting
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// A frame in the queue between the capture thread and the writer, or a note without bytes.
package struct QueuedFrame {
  /// The observation of the frame.
  package var observation: FrameObservation
  /// The frame's bytes, valid until the frame is released.
  ///
  /// Empty for a note.
  package var bytes: UnsafeRawBufferPointer
  /// The driver's buffer that holds the bytes, or nil if they are copied into the queue.
  package var heldBuffer: BufferPool.HeldBuffer?
  /// The end of this frame's memory in the queue.
  fileprivate var end = QueueChunks.Position()

  /// The start of this frame's memory in the queue.
  ///
  /// Equals the end if the frame uses no queue memory.
  fileprivate var start: Int {
    end.position - (heldBuffer == nil ? QueueChunks.aligned(bytes.count) : 0)
  }

  package init(
    observation: FrameObservation, bytes: UnsafeRawBufferPointer,
    heldBuffer: BufferPool.HeldBuffer? = nil
  ) {
    self.observation = observation
    self.bytes = bytes
    self.heldBuffer = heldBuffer
  }

  /// A note of a frame that arrived, without its bytes.
  static func note(_ observation: FrameObservation) -> QueuedFrame {
    QueuedFrame(
      observation: observation, bytes: UnsafeRawBufferPointer(start: nil, count: 0))
  }
}

/// A single-producer, single-consumer queue of frames in capture order.
///
/// Frames are copied once into memory reserved in advance, or stay in the driver's buffers until
/// they are released. The producer never blocks and uses no lock. The consumer takes frames one by
/// one with ``withNextFrame(_:)``. Alternatively it reads frames by number and releases them later,
/// which makes the queue a ring of the latest frames. A full queue rejects frames, but keeps
/// reserve space for notes about rejected frames.
package final class FrameQueue: Sendable {
  /// The number of bytes available for frames.
  package let capacity: Int
  // A frame never spans two chunks, and chunks are reused in any order. Memory use is therefore
  // bounded by the most frames that ever waited, not by the capacity.
  private nonisolated(unsafe) let chunks: QueueChunks
  private let records: SPSCRing<QueuedFrame>
  /// The pool that held buffers return to, or nil if every frame is copied.
  package let pool: BufferPool?
  private let held = Atomic<Int>(0)
  private let isClosedNow = Atomic<Bool>(false)
  private let signal = DispatchSemaphore(value: 0)
  // Whether the consumer sleeps or is about to.
  private let isTakerWaiting = Atomic<Bool>(false)
  /// The end of the filled memory and the start of the oldest frame's memory, as positions.
  private let filled = Atomic<Int>(0)
  private let released = Atomic<Int>(0)
  // The time and position of the last check for a sleeping consumer. Used only by the producer.
  private nonisolated(unsafe) var lastWake = (arrival: Int64.min, position: 0)
  /// The longest time that frames wait before the consumer is woken, in microseconds of arrival.
  ///
  /// Waking a thread costs as much as copying a frame. At high frame rates, one wake-up covers
  /// several frames.
  private static let wakeInterval: Int64 = 20_000
  /// The consumer's longest sleep, for frames that no other frame follows.
  private static let longestSleep = DispatchTimeInterval.milliseconds(50)
  /// The fill level from which the queue counts as nearly full.
  package static let nearlyFull = 0.9
  /// The number of records reserved for notes.
  private static let reserve = 4_096

  /// Reserves a queue of approximately `capacity` bytes.
  ///
  /// - Parameters:
  ///   - capacity: The size in bytes.
  ///   - largestFrame: The size in bytes of the largest frame that must fit. Nil means a quarter of
  ///     `capacity`.
  ///   - recordCount: The greatest number of frames that may wait, whatever their size.
  ///   - pool: The pool of held buffers, if frames may wait in the driver's own buffers.
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  package init(
    capacity: Int, largestFrame: Int? = nil, recordCount: Int = 1 << 13, pool: BufferPool? = nil
  ) throws(MediaError) {
    chunks = try QueueChunks(capacity: capacity, largestFrame: largestFrame ?? capacity / 4)
    self.capacity = chunks.capacity
    // Pages are allocated at the first write, as in the chunks.
    records = try MediaError.exhausting { () throws(SystemError) in
      try SPSCRing(capacity: recordCount + Self.reserve, takesMemoryNow: false)
    }
    self.pool = pool
  }

  deinit {
    close()
    while withNextFrame({ _ in }) != nil {}
  }

  /// The number of frames that wait, or are being read, in the driver's buffers.
  package var heldCount: Int { held.load(ordering: .acquiring) }

  /// Appends a frame and copies it unless its buffer is held.
  ///
  /// Returns false if the queue is full.
  package func push(_ frame: QueuedFrame) -> Bool {
    let waiting = records.count
    let reserve = frame.observation.outcome == .taken ? Self.reserve : 0
    guard waiting + reserve < records.capacity else { return false }
    // An empty queue reuses the same memory, which is likely still in the processor cache.
    if waiting == 0 {
      chunks.rewind()
      released.store(chunks.end.position, ordering: .relaxed)
    }
    var queued = frame
    queued.end = chunks.end
    if frame.heldBuffer != nil {
      held.wrappingAdd(1, ordering: .relaxed)
    } else if let source = frame.bytes.baseAddress, frame.bytes.count > 0 {
      guard let target = chunks.take(frame.bytes.count) else { return false }
      target.copyMemory(from: source, byteCount: frame.bytes.count)
      queued.bytes = UnsafeRawBufferPointer(start: target, count: frame.bytes.count)
      queued.end = chunks.end
    }
    filled.store(queued.end.position, ordering: .releasing)
    _ = records.push(queued)
    let isLate = frame.observation.arrival &- lastWake.arrival >= Self.wakeInterval
    let position = queued.end.position
    if isLate || lastWake.arrival == .min || position - lastWake.position > capacity / 16 {
      lastWake = (frame.observation.arrival, position)
      wakeTaker()
    }
    return true
  }

  /// Whether a frame of this size fits now, or can never fit.
  ///
  /// Call this on the producer's thread.
  package func hasSpace(for byteCount: Int) -> Bool {
    let waiting = records.count
    if waiting == 0 || QueueChunks.aligned(byteCount) > chunks.chunkBytes { return true }
    return waiting + Self.reserve < records.capacity && chunks.hasSpace(for: byteCount)
  }

  /// Wakes the consumer if it sleeps.
  ///
  /// Call this on the producer's thread.
  package func wakeTaker() {
    // The fence orders the push before the read of the flag. A consumer that is about to sleep sees
    // either the frame or the wake-up.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if isTakerWaiting.exchange(false, ordering: .sequentiallyConsistent) { signal.signal() }
  }

  /// Marks the end of the frames.
  package func close() {
    isClosedNow.store(true, ordering: .sequentiallyConsistent)
    wakeTaker()
  }

  /// Blocks until the next frame and calls a closure with it.
  ///
  /// Nil once the queue is closed and empty.
  package func withNextFrame<Result, Failure: Error>(
    _ body: (QueuedFrame) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    let number = startNumber
    guard waitForFrame(at: number), let frame = self[number] else { return nil }
    defer { release(before: number + 1) }
    return try body(frame)
  }

  // MARK: Frames that stay until they are released, on the taker's thread

  /// The number of the oldest frame in the queue.
  ///
  /// The first frame pushed has number 0.
  package var startNumber: Int { records.startNumber }

  /// The number that the next frame pushed will get.
  package var endNumber: Int { records.endNumber }

  /// The frame with a number, or nil if it is not in the queue.
  package subscript(number: Int) -> QueuedFrame? { records[number] }

  /// Blocks until a frame is available.
  ///
  /// Returns false if the queue is closed without it.
  package func waitForFrame(at number: Int) -> Bool {
    while number >= endNumber {
      // All frames pushed before the close are visible to a thread that sees the close.
      if isClosed { return number < endNumber }
      sleep(at: number)
    }
    return true
  }

  /// Whether no frame waits.
  ///
  /// Call this on the consumer's thread.
  package var isEmpty: Bool { startNumber >= endNumber }

  /// Whether the end of the frames was marked.
  package var isClosed: Bool { isClosedNow.load(ordering: .acquiring) }

  /// Sleeps until the next frame arrives, at most for the consumer's longest sleep.
  package func pause(at number: Int) {
    if number >= endNumber, !isClosed { sleep(at: number) }
  }

  /// Releases the memory and the driver's buffers of all frames before a number.
  package func release(before end: Int) {
    var number = startNumber
    let end = min(end, endNumber)
    while number < end, let frame = records[number] {
      if let heldBuffer = frame.heldBuffer {
        pool?.release(heldBuffer)
        held.wrappingSubtract(1, ordering: .releasing)
      }
      number += 1
      // The next frame's chunk shows whether this chunk is still in use.
      let next = records[number]
      // `released` is stored before the memory can be reused. A thread that sees the memory filled
      // again also sees its release.
      released.store(next?.start ?? frame.end.position, ordering: .relaxed)
      chunks.didRelease(upTo: next?.end.chunk ?? frame.end.chunk)
      records.pop()
    }
  }

  /// Sleeps until the producer wakes the consumer, unless a frame is available.
  private func sleep(at number: Int) {
    isTakerWaiting.store(true, ordering: .sequentiallyConsistent)
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    let isEmpty = endNumber <= number
    if isEmpty, !isClosedNow.load(ordering: .sequentiallyConsistent) {
      _ = signal.wait(timeout: .now() + Self.longestSleep)
    }
    isTakerWaiting.store(false, ordering: .relaxed)
  }

  /// The fill level from 0 to 1, for display.
  package var fillLevel: Double {
    let records = Double(records.count) / Double(records.capacity - Self.reserve)
    return max(Double(boundBytes) / Double(capacity), records)
  }

  /// Whether the next frame may find the queue full.
  package var isNearlyFull: Bool {
    fillLevel > Self.nearlyFull || boundBytes > capacity - chunks.chunkBytes
  }

  /// The bytes in use, including partly released chunks.
  package var boundBytes: Int {
    guard startNumber < endNumber else { return 0 }
    // Another thread may read `filled` before `released` advances past it, so the difference may be
    // negative.
    let end = filled.load(ordering: .acquiring)
    let start = released.load(ordering: .relaxed)
    return max(0, end - start / chunks.chunkBytes * chunks.chunkBytes)
  }
}
