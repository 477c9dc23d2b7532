// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The ring of buffers of a driver that is a program: what V4L2's queue is to a camera.
///
/// One thread takes free buffers, fills and publishes them; one dequeues; any gives back.
/// Nothing is allocated after it was made.
final class SoftwareBufferQueue: Sendable {
  private struct State {
    var free: RingOfIndices
    var filled: RingOfIndices
    var frames: [FrameObservation]
    /// Whether no more buffers will be filled, and none is.
    var hasEnded = false
    var byteCounts: [Int]
  }

  let count: Int
  let bytesPerBuffer: Int
  private let state: Mutex<State>
  private let filledSignal = DispatchSemaphore(value: 0)
  private let freeSignal = DispatchSemaphore(value: 0)
  // Written only by who took the buffer from `free`, read only by who took it from `filled`.
  private nonisolated(unsafe) let memory: UnsafeMutableRawPointer
  private let byteCount: Int

  /// Reserves the buffers.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` when the system refuses them.
  init(count: Int, bytesPerBuffer: Int) throws(MediaError) {
    self.count = count
    self.bytesPerBuffer = bytesPerBuffer
    byteCount = max(1, count * bytesPerBuffer)
    guard let memory = QueueChunks.reserve(byteCount) else {
      throw QueueChunks.refusal(bytes: byteCount, of: "the camera's buffers")
    }
    self.memory = memory
    var free = RingOfIndices(capacity: count)
    for index in 0..<count { free.append(index) }
    state = Mutex(
      State(
        free: free, filled: RingOfIndices(capacity: count),
        frames: Array(repeating: FrameObservation(sequence: 0, microseconds: 0), count: count),
        byteCounts: Array(repeating: 0, count: count)))
  }

  deinit { munmap(memory, byteCount) }

  /// Makes every buffer free again that nobody holds, for a new stream.
  func restart(keeping held: [Int]) {
    state.withLock { state in
      state.hasEnded = false
      while state.free.popFirst() != nil {}
      while state.filled.popFirst() != nil {}
      for index in 0..<count where !held.contains(index) { state.free.append(index) }
    }
    while filledSignal.wait(timeout: .now()) == .success {}
    while freeSignal.wait(timeout: .now()) == .success {}
  }

  /// The whole memory of a buffer.
  func memory(of index: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(
      start: memory + index * bytesPerBuffer, count: bytesPerBuffer)
  }

  /// A buffer to fill, or nil when the consumer has them all.
  func takeFree() -> Int? { state.withLock { $0.free.popFirst() } }

  /// A buffer to fill, waiting until the consumer gives one back; nil once nobody wants it.
  func waitForFree(orUntil isOver: () -> Bool) -> Int? {
    while !isOver() {
      if let index = takeFree() { return index }
      // In steps, so that an end is noticed although nothing is given back.
      _ = freeSignal.wait(timeout: .now() + .milliseconds(50))
    }
    return nil
  }

  /// Hands a filled buffer to the consumer.
  func publish(_ index: Int, byteCount: Int, _ frame: FrameObservation) {
    state.withLock {
      $0.frames[index] = frame
      $0.byteCounts[index] = min(byteCount, bytesPerBuffer)
      $0.filled.append(index)
    }
    filledSignal.signal()
  }

  /// Says that no more buffers will be filled.
  func end() {
    filledSignal.signal()
  }

  /// Whether the end was met: no buffer is filled, and none will be.
  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// The oldest filled buffer, waiting for it up to a time limit; nil at the limit and at the end.
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
      // Woken without a buffer: that is the end, and whoever asks again must see it too.
      filledSignal.signal()
      return nil
    }
    return DequeuedBuffer(
      taken.frame,
      bytes: UnsafeRawBufferPointer(
        start: memory + taken.index * bytesPerBuffer, count: taken.byteCount),
      index: taken.index, driver: driver)
  }

  /// Takes a buffer back.
  func giveBack(_ index: Int) {
    state.withLock { $0.free.append(index) }
    freeSignal.signal()
  }
}

/// A first-in, first-out list of at most `capacity` numbers that never allocates.
private struct RingOfIndices {
  private var slots: [Int]
  private var start = 0
  private var count = 0

  init(capacity: Int) { slots = Array(repeating: 0, count: capacity) }

  mutating func append(_ index: Int) {
    precondition(count < slots.count, "A buffer was given back twice.")
    slots[(start + count) % slots.count] = index
    count += 1
  }

  mutating func popFirst() -> Int? {
    guard count > 0 else { return nil }
    defer {
      start = (start + 1) % slots.count
      count -= 1
    }
    return slots[start]
  }
}
