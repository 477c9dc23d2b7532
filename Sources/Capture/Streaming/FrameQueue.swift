// SPDX-License-Identifier: Apache-2.0

import Dispatch
package import OvercrankFrameAccounting
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// A frame in the queue between the capture thread and the writer, or a note that one arrived.
package struct QueuedFrame {
  /// What was seen of it.
  package var observation: FrameObservation
  /// The bytes, valid until the queue is told to release the frame; none where the frame is not
  /// in the queue but only noted.
  package var bytes: UnsafeRawBufferPointer
  /// The driver's buffer in which the bytes lie; nil where they are to be copied.
  package var heldBuffer: BufferPool.HeldBuffer?
  /// The queue's memory until and with this frame's.
  fileprivate var end = QueueChunks.Position()

  /// Where this frame's memory begins, as a position; its end where it has none.
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

  /// A note of what arrived, without its bytes.
  static func note(_ observation: FrameObservation) -> QueuedFrame {
    QueuedFrame(
      observation: observation, bytes: UnsafeRawBufferPointer(start: nil, count: 0))
  }
}

/// Frames in order of capture, copied once into memory that was reserved beforehand, or left in
/// the driver's buffers, which are given back when the frame has been taken.
///
/// One thread pushes and never waits: it shares counters with the other thread, no lock. One
/// thread takes frames out, either one by one (``withNextFrame(_:)``) or by looking at frames that
/// stay until it releases them, which makes the queue a ring of the latest frames. A full queue
/// refuses the frame; room for notes about refused frames is kept longer.
package final class FrameQueue: Sendable {
  /// Bytes that frames may take.
  package let capacity: Int
  // Frames never lie across two chunks, and chunks are used again in any order: so no more memory
  // is taken than frames ever waited, whatever the capacity.
  private nonisolated(unsafe) let chunks: QueueChunks
  private let records: SPSCRing<QueuedFrame>
  /// Where held buffers are given back; nil where every frame is copied.
  package let pool: BufferPool?
  private let held = Atomic<Int>(0)
  private let isClosedNow = Atomic<Bool>(false)
  private let signal = DispatchSemaphore(value: 0)
  // Whether the taker sleeps, or is about to.
  private let isTakerWaiting = Atomic<Bool>(false)
  /// Up to where memory was filled, and where that of the first frame that is here begins, as
  /// positions.
  private let filled = Atomic<Int>(0)
  private let released = Atomic<Int>(0)
  // Only the pusher's: when and where it last looked whether the taker sleeps.
  private nonisolated(unsafe) var lastWake = (arrival: Int64.min, position: 0)
  /// How long frames may wait until the taker is woken, in microseconds of arrival: to wake a
  /// thread costs as much as to copy a picture, so fast cameras have it done for several frames.
  private static let wakeInterval: Int64 = 20_000
  /// How long the taker sleeps at most, for frames that none followed.
  private static let longestSleep = DispatchTimeInterval.milliseconds(50)
  /// The share of the queue from which on it is nearly full.
  package static let nearlyFull = 0.9
  /// Records that only notes may take.
  private static let reserve = 4_096

  /// Reserves a queue of about this many bytes.
  ///
  /// - Parameters:
  ///   - capacity: The bytes.
  ///   - largestFrame: The bytes of the largest frame that is to fit; a quarter of the capacity
  ///     if nil.
  ///   - recordCount: How many frames may wait, however small.
  ///   - pool: Where buffers are held, if frames are to wait in the driver's own buffers.
  /// - Throws: `MediaError` with `.outOfMemory` when the system refuses them.
  package init(
    capacity: Int, largestFrame: Int? = nil, recordCount: Int = 1 << 13, pool: BufferPool? = nil
  ) throws(MediaError) {
    chunks = try QueueChunks(capacity: capacity, largestFrame: largestFrame ?? capacity / 4)
    self.capacity = chunks.capacity
    // Like the chunks, records take memory only when they are first written.
    records = try MediaError.exhausting { () throws(SystemError) in
      try SPSCRing(capacity: recordCount + Self.reserve, takesMemoryNow: false)
    }
    self.pool = pool
  }

  deinit {
    close()
    while withNextFrame({ _ in }) != nil {}
  }

  /// Frames in held buffers that wait here, or are just being taken.
  package var heldCount: Int { held.load(ordering: .acquiring) }

  /// Copies a frame in unless its buffer is held, or answers false when there is no room.
  package func push(_ frame: QueuedFrame) -> Bool {
    let waiting = records.count
    let reserve = frame.observation.outcome == .taken ? Self.reserve : 0
    guard waiting + reserve < records.capacity else { return false }
    // A taker that keeps up has the same memory filled again, which the processor still holds.
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

  /// Whether a frame of so many bytes finds room, or never will; on the pusher's thread.
  package func hasSpace(for byteCount: Int) -> Bool {
    let waiting = records.count
    if waiting == 0 || QueueChunks.aligned(byteCount) > chunks.chunkBytes { return true }
    return waiting + Self.reserve < records.capacity && chunks.hasSpace(for: byteCount)
  }

  /// Wakes the taker if it sleeps; on the pusher's thread.
  package func wakeTaker() {
    // What was pushed is seen by a taker whose wish to sleep is not.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if isTakerWaiting.exchange(false, ordering: .sequentiallyConsistent) { signal.signal() }
  }

  /// Says that no more frames will come.
  package func close() {
    isClosedNow.store(true, ordering: .sequentiallyConsistent)
    wakeTaker()
  }

  /// Waits for the next frame and shows it; nil once the queue is closed and empty.
  package func withNextFrame<Result, Failure: Error>(
    _ body: (QueuedFrame) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    let number = startNumber
    guard waitForFrame(at: number), let frame = self[number] else { return nil }
    defer { release(before: number + 1) }
    return try body(frame)
  }

  // MARK: Frames that stay until they are released, on the taker's thread

  /// The number of the oldest frame that is still here, counted from the first that was pushed.
  package var startNumber: Int { records.startNumber }

  /// The number of the frame that comes next.
  package var endNumber: Int { records.endNumber }

  /// A frame by its number, or nil where it has not come yet; one that was released is none.
  package subscript(number: Int) -> QueuedFrame? { records[number] }

  /// Waits until a frame is there; false once the queue is closed and it never will be.
  package func waitForFrame(at number: Int) -> Bool {
    while number >= endNumber {
      // Whatever was pushed before the queue was closed is seen by whoever sees it closed.
      if isClosed { return number < endNumber }
      sleep(at: number)
    }
    return true
  }

  /// Whether no frame waits; on the taker's thread.
  package var isEmpty: Bool { startNumber >= endNumber }

  /// Whether no more frames will come.
  package var isClosed: Bool { isClosedNow.load(ordering: .acquiring) }

  /// Waits for the next frame to come, but no longer than the taker sleeps anyway.
  package func pause(at number: Int) {
    if number >= endNumber, !isClosed { sleep(at: number) }
  }

  /// Gives the memory of all frames before one back, and the driver's buffers.
  package func release(before end: Int) {
    var number = startNumber
    let end = min(end, endNumber)
    while number < end, let frame = records[number] {
      if let heldBuffer = frame.heldBuffer {
        pool?.release(heldBuffer)
        held.wrappingSubtract(1, ordering: .releasing)
      }
      number += 1
      // With the first frame of the next chunk it is known that no other is in this one.
      let next = records[number]
      // Before the memory may be filled again: who sees it filled sees it released.
      released.store(next?.start ?? frame.end.position, ordering: .relaxed)
      chunks.didRelease(upTo: next?.end.chunk ?? frame.end.chunk)
      records.pop()
    }
  }

  /// Sleeps until the pusher wakes the taker, if there is still nothing to take.
  private func sleep(at number: Int) {
    isTakerWaiting.store(true, ordering: .sequentiallyConsistent)
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    let isEmpty = endNumber <= number
    if isEmpty, !isClosedNow.load(ordering: .sequentiallyConsistent) {
      _ = signal.wait(timeout: .now() + Self.longestSleep)
    }
    isTakerWaiting.store(false, ordering: .relaxed)
  }

  /// How full the queue is, from 0 to 1, for display.
  package var fillLevel: Double {
    let records = Double(records.count) / Double(records.capacity - Self.reserve)
    return max(Double(boundBytes) / Double(capacity), records)
  }

  /// Whether so much of the queue is taken that the next frame may find no room.
  package var isNearlyFull: Bool {
    fillLevel > Self.nearlyFull || boundBytes > capacity - chunks.chunkBytes
  }

  /// Bytes that frames bind, chunks that are not yet free included.
  package var boundBytes: Int {
    guard startNumber < endNumber else { return 0 }
    // Asked by a thread that is neither of the two, the first may be older than the second.
    let end = filled.load(ordering: .acquiring)
    let start = released.load(ordering: .relaxed)
    return max(0, end - start / chunks.chunkBytes * chunks.chunkBytes)
  }
}
