// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
package import OvercrankFrameAccounting
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// An entry in the queue between the capture thread and the writer: a frame, or a note about a
/// frame.
///
/// A note describes a frame that is not stored, such as a dropped one, and has no bytes.
package struct QueuedFrame {
  /// The driver's values and the capture thread's times for the frame.
  package var observation: FrameObservation
  /// The frame's bytes, valid until the frame is released.
  ///
  /// Empty for a note.
  package var bytes: UnsafeRawBufferPointer
  /// The driver's buffer that holds the bytes, or nil if they are copied into the queue.
  package var heldBuffer: BufferPool.HeldBuffer?
  /// The position at which the frame's bytes end in the queue's memory.
  fileprivate var end = QueueChunks.Position()

  /// The position at which the frame's bytes start in the queue's memory.
  ///
  /// If the bytes are in a driver's buffer, the start equals the end.
  fileprivate var start: Int {
    end.position - (heldBuffer == nil ? QueueChunks.aligned(bytes.count) : 0)
  }

  package init(
    observation: FrameObservation, bytes: UnsafeRawBufferPointer,
    heldBuffer: BufferPool.HeldBuffer? = nil
  ) {
    (self.observation, self.bytes, self.heldBuffer) = (observation, bytes, heldBuffer)
  }

  /// Creates a note for a frame that arrived but is not stored.
  package static func note(_ observation: FrameObservation) -> QueuedFrame {
    QueuedFrame(
      observation: observation, bytes: UnsafeRawBufferPointer(start: nil, count: 0))
  }
}

/// A single-producer, single-consumer queue of frames in capture order.
///
/// Frames are copied once into memory reserved in advance, or stay in the driver's buffers until
/// they are released. The producer never blocks and uses no lock. The consumer takes frames one by
/// one with ``withNextFrame(_:)``. Alternatively it reads frames by number and releases them later,
/// so that the queue always contains the latest frames. Meanwhile, other threads may read frames by
/// number with a ``Reader``. A full queue rejects frames, but it has reserved space in which notes
/// report the rejected frames.
package final class FrameQueue: Sendable {
  /// The total number of bytes that the queue has for frames.
  package let capacity: Int
  // A frame never spans two chunks, so free chunks can be reused in any order. Memory is only used
  // for as many chunks as were ever filled at the same time, not for the whole capacity.
  private nonisolated(unsafe) let chunks: QueueChunks
  private let records: SPSCRing<QueuedFrame>
  /// The pool that owns the held buffers, or nil if every frame is copied.
  package let pool: BufferPool?
  private let held = Atomic<Int>(0)
  private let isClosedNow = Atomic<Bool>(false)
  private let signal = DispatchSemaphore(value: 0)
  // Whether the consumer's thread sleeps, or has decided to sleep.
  private let isTakerWaiting = Atomic<Bool>(false)
  /// The position up to which the producer has filled the memory.
  ///
  /// The position only grows.
  private let filled = Atomic<Int>(0)
  /// The position up to which the consumer has released the memory.
  ///
  /// The position only grows.
  private let released = Atomic<Int>(0)
  /// The number before which the consumer has released all frames.
  ///
  /// The memory of the last of them may still be in use by a ``Reader``.
  private let start = Atomic<Int>(0)
  /// The number of the frame that a ``Reader`` reads now, or -1.
  private let read = Atomic<Int>(-1)
  /// Lets one reader read a frame at a time.
  private let readers = Mutex(())
  // The arrival time of the frame for which `push(_:)` last called `wakeTaker()`, and the value of
  // `filled` at that time. Used only by the producer.
  private nonisolated(unsafe) var lastWake = (arrival: Int64.min, position: 0)
  /// The longest time for which the producer lets a sleeping consumer wait, in microseconds.
  ///
  /// It is measured between the arrival times of frames.
  ///
  /// Waking a thread costs as much as copying a frame. At high frame rates, the consumer is
  /// therefore woken once for several frames.
  private static let wakeInterval: Int64 = 20_000
  /// The longest sleep of the consumer.
  ///
  /// The producer does not wake the consumer for every frame. Without this limit, the last frame
  /// before an interruption of the stream might wait until the stream continues.
  private static let longestSleep = DispatchTimeInterval.milliseconds(50)
  /// The fill level above which the queue counts as nearly full; 0 is empty, and 1 is full.
  package static let nearlyFull = 0.9
  /// The number of queue entries that are reserved for notes about frames.
  ///
  /// A queue that is full of frames can therefore still report the frames that it rejects.
  private static let reserve = 4_096

  /// The size in bytes of a queue for frames of a camera.
  ///
  /// The queue holds two seconds of frames, but at least 32 MB and at most 512 MB. If the consumer
  /// stalls, no frame is lost until the queue is full.
  package static func byteCount(largestFrame: Int, frameRate: FrameRate) -> Int {
    let frame = Double(largestFrame)
    let seconds = 2 * frame * frameRate.doubleValue
    // A frame larger than half of the queue might never fit, so the queue has space for at least
    // four frames.
    return Int(max(min(max(seconds, 32e6), 512e6), 4 * (frame + 4_096)))
  }

  /// Reserves a queue of approximately `capacity` bytes.
  ///
  /// - Parameters:
  ///   - capacity: The size in bytes.
  ///   - largestFrame: The size in bytes of the largest frame that must fit. Nil selects a quarter
  ///     of `capacity`.
  ///   - recordCount: The greatest number of frames that may wait, regardless of their size.
  ///   - pool: The pool of held buffers, if frames may wait in the driver's own buffers.
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  package init(
    capacity: Int, largestFrame: Int? = nil, recordCount: Int = 1 << 13, pool: BufferPool? = nil
  ) throws(MediaError) {
    chunks = try QueueChunks(capacity: capacity, largestFrame: largestFrame ?? capacity / 4)
    self.capacity = chunks.capacity
    // The system allocates the memory of the entries page by page at the first write, as it does
    // for the frames.
    records = try CallStage.resources.converting { () throws(CallFailure) in
      try SPSCRing(capacity: recordCount + Self.reserve, takesMemoryNow: false)
    }
    self.pool = pool
  }

  deinit {
    close()
    release(before: endNumber)
  }

  /// The number of frames that wait, or are being read, in the driver's buffers.
  package var heldCount: Int { held.load(ordering: .acquiring) }

  /// Appends a frame, or returns false if the queue is full.
  ///
  /// The frame is copied unless its driver's buffer is held.
  package func push(_ frame: QueuedFrame) -> Bool {
    let waiting = records.count
    let reserve = frame.observation.outcome == .taken ? Self.reserve : 0
    guard waiting + reserve < records.capacity else { return false }
    // If the queue is empty, the same memory is filled again, because it is likely still in the
    // processor's cache.
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

  /// Whether the queue can accept a frame of this size now.
  ///
  /// Also true for a frame that can never fit, because the caller would otherwise wait forever.
  ///
  /// Call this on the producer's thread.
  package func hasSpace(for byteCount: Int) -> Bool {
    let waiting = records.count
    if waiting == 0 || QueueChunks.aligned(byteCount) > chunks.chunkBytes { return true }
    return waiting + Self.reserve < records.capacity && chunks.hasSpace(for: byteCount)
  }

  /// Wakes the consumer if it sleeps.
  package func wakeTaker() {
    // The fence orders the push of the frame, or the end of a read, before the read of the flag. If
    // the consumer is about to sleep, either it sees the frame and stays awake, or this thread sees
    // the flag and wakes it.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if isTakerWaiting.exchange(false, ordering: .sequentiallyConsistent) { signal.signal() }
  }

  /// Marks the end of the stream.
  ///
  /// No frame may be pushed afterwards.
  package func close() {
    isClosedNow.store(true, ordering: .sequentiallyConsistent)
    wakeTaker()
  }

  /// Blocks until the next frame and calls a closure with it.
  ///
  /// Returns nil once the queue is closed and empty.
  package func withNextFrame<Result, Failure: Error>(
    _ body: (QueuedFrame) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    let number = startNumber
    guard waitForFrame(at: number), let frame = self[number] else { return nil }
    defer { release(before: number + 1) }
    return try body(frame)
  }

  // MARK: Frames that stay until they are released, on the consumer's thread

  /// The number of the oldest frame in the queue.
  ///
  /// The first frame pushed has number 0.
  package var startNumber: Int { start.load(ordering: .acquiring) }

  /// The number that the next frame pushed will get.
  package var endNumber: Int { records.endNumber }

  /// The frame with a number, or nil if it is not in the queue.
  package subscript(number: Int) -> QueuedFrame? {
    number < startNumber ? nil : records[number]
  }

  /// Blocks until the frame with this number is available.
  ///
  /// Returns false if the queue was closed before that frame.
  package func waitForFrame(at number: Int) -> Bool {
    while number >= endNumber {
      // The last frame may have been pushed just before the queue was closed, after `endNumber` was
      // read above. All frames are visible once the queue is seen as closed, so the number is
      // compared again.
      if isClosed { return number < endNumber }
      sleep(at: number)
    }
    return true
  }

  /// Whether the queue contains no frame.
  ///
  /// Call this on the consumer's thread.
  package var isEmpty: Bool { startNumber >= endNumber }

  /// Whether ``close()`` was called.
  package var isClosed: Bool { isClosedNow.load(ordering: .acquiring) }

  /// Sleeps until the frame with this number arrives, but no longer than `longestSleep`.
  package func pause(at number: Int) {
    if number >= endNumber, !isClosed { sleep(at: number) }
  }

  /// Releases the memory and the driver's buffers of all frames with a number below `end`.
  ///
  /// Never waits. If a ``Reader`` still reads one of these frames, the memory of this frame and of
  /// the later ones is freed by the next call, or when this thread next waits for a frame.
  package func release(before end: Int) {
    let end = min(end, endNumber)
    if end > startNumber { start.store(end, ordering: .sequentiallyConsistent) }
    free()
  }

  /// Whether a ``Reader`` keeps memory of released frames, so that releasing more frames frees nothing.
  ///
  /// Call this on the consumer's thread.
  package var isReleasePending: Bool { records.startNumber < startNumber }

  /// Frees the memory of released frames, up to the first one that a ``Reader`` still reads.
  private func free() {
    let end = startNumber
    var number = records.startNumber
    // Either this thread sees that a reader reads the frame, or the reader sees that the frame is
    // released.
    while number < end, read.load(ordering: .sequentiallyConsistent) != number,
      let frame = records[number]
    {
      if let heldBuffer = frame.heldBuffer {
        pool?.release(heldBuffer)
        held.wrappingSubtract(1, ordering: .releasing)
      }
      number += 1
      // The chunk of the last released frame is freed only if the next frame is in another chunk.
      let next = records[number]
      // `released` is stored before the chunk is freed. A thread that sees new frames in the chunk
      // therefore also sees the new value of `released`. Otherwise `boundBytes` could count the
      // chunk twice.
      released.store(next?.start ?? frame.end.position, ordering: .relaxed)
      chunks.didRelease(upTo: next?.end.chunk ?? frame.end.chunk)
      records.pop()
    }
  }

  /// Sleeps until the producer wakes the consumer.
  ///
  /// Returns at once if the frame is available.
  private func sleep(at number: Int) {
    isTakerWaiting.store(true, ordering: .sequentiallyConsistent)
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    // The producer may have no space until this memory is free. Either this thread sees that a
    // reader has finished, or the reader sees that this thread waits, and wakes it.
    free()
    let isEmpty = endNumber <= number
    if isEmpty, !isClosedNow.load(ordering: .sequentiallyConsistent) {
      _ = signal.wait(timeout: .now() + Self.longestSleep)
    }
    isTakerWaiting.store(false, ordering: .relaxed)
  }

  /// The fraction of the queue that is full, from 0 to 1, for display.
  package var fillLevel: Double {
    let records = Double(records.count) / Double(records.capacity - Self.reserve)
    return max(Double(boundBytes) / Double(capacity), records)
  }

  /// Whether the queue is so full that it may reject the next frame.
  package var isNearlyFull: Bool {
    fillLevel > Self.nearlyFull || boundBytes > capacity - chunks.chunkBytes
  }

  /// The number of bytes of the queue's memory that are in use.
  ///
  /// A chunk counts until all its frames are released.
  package var boundBytes: Int {
    guard records.startNumber < endNumber else { return 0 }
    // Both positions, `filled` and `released`, may change between the two reads. If `released`
    // passes the value read from `filled`, the difference is negative and counts as 0.
    let end = filled.load(ordering: .acquiring)
    let start = released.load(ordering: .relaxed)
    return max(0, end - start / chunks.chunkBytes * chunks.chunkBytes)
  }

  /// Reads the frames of a queue by number, on any thread, while frames are pushed and released.
  ///
  /// Neither the producer nor the consumer ever waits for a reader. A reader may therefore
  /// be too late for a frame. The result then contains the number of the oldest frame, with which the
  /// reader can continue.
  package struct Reader: Sendable {
    private let queue: FrameQueue

    fileprivate init(_ queue: FrameQueue) { self.queue = queue }

    /// The numbers of the frames that are in the queue now, from the oldest to the newest.
    ///
    /// The first frame pushed has number 0. The oldest of these frames may be released at any time.
    package var numbers: Range<Int> {
      let start = queue.startNumber
      return start..<max(start, queue.endNumber)
    }

    /// Calls a closure with the frame of a number.
    ///
    /// The frame's memory, and that of later frames, is not freed during the closure. The closure
    /// therefore only copies what it needs, and other readers of the queue wait for it. It must not
    /// read another frame.
    ///
    /// - Parameters:
    ///   - number: The number of the frame.
    ///   - body: Receives the frame. Its bytes are valid until the closure returns.
    /// - Returns: The result of the closure, or the reason why the frame cannot be read.
    package func withFrame<Value: Sendable>(
      _ number: Int, _ body: (QueuedFrame) -> Value
    ) -> Reading<Value> {
      queue.withFrame(number, body)
    }
  }

  /// The result of ``Reader/withFrame(_:_:)``.
  package enum Reading<Value: Sendable>: Sendable {
    /// The frame was read. If the frame is a note, it has no bytes.
    case frame(Value)
    /// The reader is too late: the frame was already released.
    ///
    /// `oldest` is the number of the oldest frame that is still in the queue, or of the next one if
    /// the queue is empty.
    case released(oldest: Int)
    /// The frame has not arrived.
    case notArrived
    /// The queue was closed before the frame.
    case ended
  }

  /// Reads this queue on other threads.
  package var reader: Reader { Reader(self) }

  private func withFrame<Value: Sendable>(
    _ number: Int, _ body: (QueuedFrame) -> Value
  ) -> Reading<Value> {
    readers.withLock { _ in
      // The last frame may be pushed just before the queue is closed, so this is read first.
      let isClosed = isClosed
      read.store(number, ordering: .sequentiallyConsistent)
      defer {
        read.store(-1, ordering: .sequentiallyConsistent)
        if number < start.load(ordering: .sequentiallyConsistent) { wakeTaker() }
      }
      let start = start.load(ordering: .sequentiallyConsistent)
      guard number >= start else { return .released(oldest: start) }
      guard let frame = records[number] else { return isClosed ? .ended : .notArrived }
      return .frame(body(frame))
    }
  }
}

/// The memory of a ``FrameQueue``, in chunks of equal size.
///
/// The producer fills chunks one after the other. It reuses the chunk that has been free the
/// longest, and uses new memory only if no chunk is free. The consumer frees a chunk once it reads
/// from the next one. Neither thread blocks the other.
struct QueueChunks: ~Copyable {
  /// The total size of the chunks in bytes.
  let capacity: Int
  let chunkBytes: Int
  private let count: Int
  private let memory: UnsafeMutableRawPointer
  /// The free chunks, in the order in which they were freed.
  ///
  /// The ring has space for all chunks.
  private let free: SPSCRing<Int>
  private let filling: UnsafeMutablePointer<Filling>
  /// The chunk that the consumer reads from.
  ///
  /// Used only by the consumer.
  private let takenFrom: UnsafeMutablePointer<Int>

  /// The chunk and the position in the queue's memory at which a frame ends.
  struct Position {
    var chunk = 0
    /// The number of bytes from the start of the queue, counted as if no memory were reused.
    var position = 0
  }

  /// The chunk and the position where the producer stores the next frame.
  ///
  /// Used only by the producer.
  private struct Filling {
    var end = Position()
    /// The number of bytes that are still free in the chunk that is being filled.
    var left: Int
    var usedCount = 1
  }

  private static let alignment = 64
  private static let pageBytes = 4_096

  /// Reserves approximately `capacity` bytes in at least two chunks.
  ///
  /// The chunk size is a multiple of the largest frame, rounded up to whole pages. Chunks that
  /// contain such frames have little unused space.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  init(capacity: Int, largestFrame: Int) throws(MediaError) {
    let frame = Self.aligned(max(1, largestFrame))
    // A chunk can be reused only when all its frames are released, so chunks are as small as the
    // frames allow.
    let frames = max(1, min((2 << 20) / frame, capacity / (16 * frame)))
    let chunkBytes = (frames * frame + Self.pageBytes - 1) / Self.pageBytes * Self.pageBytes
    let count = max(2, capacity / chunkBytes)
    let free = try CallStage.resources.converting { () throws(CallFailure) in
      try SPSCRing<Int>(capacity: count, takesMemoryNow: false)
    }
    memory = try ReservedMemory.reserve(count * chunkBytes, for: "the frame queue")
    (self.chunkBytes, self.count) = (chunkBytes, count)
    self.capacity = count * chunkBytes
    self.free = free
    filling = .allocate(capacity: 1)
    filling.initialize(to: Filling(left: chunkBytes))
    takenFrom = .allocate(capacity: 1)
    takenFrom.initialize(to: 0)
  }

  deinit {
    munmap(memory, capacity)
    filling.deallocate()
    takenFrom.deallocate()
  }

  /// Whether a frame has space now.
  ///
  /// The frame must be no larger than a chunk.
  ///
  /// Call this on the producer's thread.
  func hasSpace(for byteCount: Int) -> Bool {
    let needed = Self.aligned(byteCount)
    return needed <= filling.pointee.left || filling.pointee.usedCount < count
      || free.count > 0
  }

  /// Allocates space for a frame, or returns nil if the queue is full.
  ///
  /// Call this on the producer's thread.
  func take(_ byteCount: Int) -> UnsafeMutableRawPointer? {
    let needed = Self.aligned(byteCount)
    guard needed <= chunkBytes else { return nil }
    if needed > filling.pointee.left {
      guard let next = nextChunk() else { return nil }
      filling.pointee.end.chunk = next
      filling.pointee.end.position += filling.pointee.left
      filling.pointee.left = chunkBytes
    }
    let start = chunkBytes - filling.pointee.left
    filling.pointee.left -= needed
    filling.pointee.end.position += needed
    return memory + filling.pointee.end.chunk * chunkBytes + start
  }

  /// Starts to fill the current chunk from its beginning.
  ///
  /// All frames in the chunk must already be released.
  ///
  /// Call this on the producer's thread.
  func rewind() {
    guard filling.pointee.left < chunkBytes else { return }
    // The position skips the unused rest of the chunk, as `take(_:)` does when it starts a new
    // chunk. If it went back instead, positions would repeat.
    filling.pointee.end.position += filling.pointee.left
    filling.pointee.left = chunkBytes
  }

  /// The position in the queue's memory at which the last frame ends.
  ///
  /// Call this on the producer's thread.
  var end: Position { filling.pointee.end }

  private func nextChunk() -> Int? {
    if let chunk = free.pop() { return chunk }
    guard filling.pointee.usedCount < count else { return nil }
    defer { filling.pointee.usedCount += 1 }
    return filling.pointee.usedCount
  }

  /// Frees the previous chunk once the consumer has released all frames in it and reads from
  /// `chunk`.
  ///
  /// Call this on the consumer's thread.
  func didRelease(upTo chunk: Int) {
    guard chunk != takenFrom.pointee else { return }
    _ = free.push(takenFrom.pointee)  // Always succeeds: the ring has space for all chunks.
    takenFrom.pointee = chunk
  }

  static func aligned(_ count: Int) -> Int {
    (count + alignment - 1) / alignment * alignment
  }
}
