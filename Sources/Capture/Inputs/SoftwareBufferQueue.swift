// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Dispatch
import Glibc
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The buffer queue of a driver implemented in this program.
///
/// It corresponds to the queue of a V4L2 driver.
///
/// One thread takes free buffers, fills them and publishes them. One thread dequeues them. Any
/// thread returns them. Nothing is allocated after initialization.
final class SoftwareBufferQueue: Sendable {
  private struct State {
    // Neither `free` nor `filled` ever holds more than `count` indices. Memory for `count` indices
    // is reserved, so neither allocates more.
    var free: Deque<Int>
    var filled: Deque<Int>
    var frames: [FrameObservation]
    /// Whether the stream has ended and every filled buffer was dequeued.
    var hasEnded = false
    var byteCounts: [Int]
  }

  let count: Int
  let bytesPerBuffer: Int
  private let state: Mutex<State>
  private let filledSignal = DispatchSemaphore(value: 0)
  private let freeSignal = DispatchSemaphore(value: 0)
  // A buffer is written only by the thread that took it from `free`, and read only by the thread
  // that took it from `filled`.
  private nonisolated(unsafe) let memory: UnsafeMutableRawPointer
  private let byteCount: Int

  /// Reserves the buffers.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  init(count: Int, bytesPerBuffer: Int) throws(MediaError) {
    self.count = count
    self.bytesPerBuffer = bytesPerBuffer
    byteCount = max(1, count * bytesPerBuffer)
    guard let memory = QueueChunks.reserve(byteCount) else {
      throw QueueChunks.refusal(bytes: byteCount, of: "the camera's buffers")
    }
    self.memory = memory
    var free = Deque<Int>(minimumCapacity: count)
    free.append(contentsOf: 0..<count)
    state = Mutex(
      State(
        free: free, filled: Deque(minimumCapacity: count),
        frames: Array(repeating: FrameObservation(sequence: 0, microseconds: 0), count: count),
        byteCounts: Array(repeating: 0, count: count)))
  }

  deinit { munmap(memory, byteCount) }

  /// Starts a new stream, in which all buffers are free except the held ones.
  func restart(keeping held: [Int]) {
    state.withLock { state in
      state.hasEnded = false
      state.free.removeAll(keepingCapacity: true)
      state.filled.removeAll(keepingCapacity: true)
      for index in 0..<count where !held.contains(index) { state.free.append(index) }
    }
    while filledSignal.wait(timeout: .now()) == .success {}
    while freeSignal.wait(timeout: .now()) == .success {}
  }

  /// The memory of a buffer.
  func memory(of index: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(
      start: memory + index * bytesPerBuffer, count: bytesPerBuffer)
  }

  /// The index of a free buffer, or nil if all buffers are filled or in use by the consumer.
  func takeFree() -> Int? { state.withLock { $0.free.popFirst() } }

  /// Waits for a free buffer, and returns nil once `isOver` returns true.
  func waitForFree(orUntil isOver: () -> Bool) -> Int? {
    while !isOver() {
      if let index = takeFree() { return index }
      // The wait ends at least every 50 ms. If no buffer is ever returned, `isOver` is still
      // checked.
      _ = freeSignal.wait(timeout: .now() + .milliseconds(50))
    }
    return nil
  }

  /// Passes a filled buffer to the consumer.
  func publish(_ index: Int, byteCount: Int, _ frame: FrameObservation) {
    state.withLock {
      $0.frames[index] = frame
      $0.byteCounts[index] = min(byteCount, bytesPerBuffer)
      $0.filled.append(index)
    }
    filledSignal.signal()
  }

  /// Marks the end of the stream.
  ///
  /// Buffers that are already filled are still delivered.
  func end() {
    filledSignal.signal()
  }

  /// Whether the consumer reached the end of the stream.
  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// Waits for the oldest filled buffer.
  ///
  /// Returns nil at the timeout and at the end of the stream.
  func dequeue(timeoutMilliseconds: Int32, for driver: any FrameDriver) -> DequeuedBuffer? {
    if filledSignal.wait(timeout: .now() + .milliseconds(Int(timeoutMilliseconds))) == .timedOut {
      return nil
    }
    let taken: (index: Int, frame: FrameObservation, byteCount: Int)? = state.withLock {
      guard let index = $0.filled.popFirst() else {
        $0.hasEnded = true
        return nil
      }
      return (index, $0.frames[index], $0.byteCounts[index])
    }
    guard let taken else {
      // If the thread is woken and no buffer is filled, the stream has ended. The signal is
      // repeated, so that later calls return at once too.
      filledSignal.signal()
      return nil
    }
    return DequeuedBuffer(
      taken.frame,
      bytes: UnsafeRawBufferPointer(
        start: memory + taken.index * bytesPerBuffer, count: taken.byteCount),
      index: taken.index, driver: driver)
  }

  /// Returns a buffer to the free list.
  func giveBack(_ index: Int) {
    state.withLock {
      precondition($0.free.count < count, "A buffer was given back twice.")
      $0.free.append(index)
    }
    freeSignal.signal()
  }
}
