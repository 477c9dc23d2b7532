// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Dispatch
import Glibc
package import OvercrankFrameAccounting
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// A frame of a simulated camera, in a buffer that the consumer returns.
package struct FilledBuffer {
  package let observation: FrameObservation
  /// The index of the buffer.
  package let index: Int
  package let bytes: UnsafeRawBufferPointer
}

/// The buffer queue of a driver implemented in this program.
///
/// It corresponds to the queue of a V4L2 driver.
///
/// One thread takes free buffers, fills them and publishes them. One thread dequeues them. Any
/// thread returns them. Nothing is allocated after initialization.
package final class SoftwareBufferQueue: Sendable {
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
  package init(count: Int, bytesPerBuffer: Int) throws(MediaError) {
    (self.count, self.bytesPerBuffer) = (count, bytesPerBuffer)
    byteCount = max(1, count * bytesPerBuffer)
    memory = try ReservedMemory.reserve(byteCount, for: "the camera's buffers")
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
  package func restart(keeping held: [Int]) {
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
  package func memory(of index: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(
      start: memory + index * bytesPerBuffer, count: bytesPerBuffer)
  }

  /// The index of a free buffer, or nil if all buffers are filled or in use by the consumer.
  package func takeFree() -> Int? { state.withLock { $0.free.popFirst() } }

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
  func dequeue(timeoutMilliseconds: Int32) -> FilledBuffer? {
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
    return FilledBuffer(
      observation: taken.frame, index: taken.index,
      bytes: UnsafeRawBufferPointer(
        start: memory + taken.index * bytesPerBuffer, count: taken.byteCount))
  }

  /// Returns a buffer to the free list.
  package func giveBack(_ index: Int) {
    state.withLock {
      precondition($0.free.count < count, "A buffer was given back twice.")
      $0.free.append(index)
    }
    freeSignal.signal()
  }
}

/// The clock of a camera that delivers frames as fast as they are consumed.
///
/// The clock shows the time of the latest consumed frame. The camera's audio uses the same clock.
/// If the audio has a consumer, frames wait for the audio.
package final class FrameClock: Sendable {
  private let latest = Atomic<Int64>(0)
  /// The time up to which audio was delivered, in microseconds.
  ///
  /// It is `.max`, so that frames never wait, if the audio has no consumer.
  private let heard = Atomic<Int64>(.max)
  /// Frames may be ahead of the audio by one frame period plus this time, in microseconds.
  private static let lead: Int64 = 50_000

  package init() {}

  /// The time of the latest frame in microseconds.
  ///
  /// Before the first frame, it is the system's monotonic time.
  package func microseconds() -> Int64 {
    let time = latest.load(ordering: .acquiring)
    return time > 0 ? time : MonotonicClock.microseconds()
  }

  /// The start time for a new stream, in microseconds.
  ///
  /// It is never earlier than a time that this clock has shown.
  func startOfStream() -> Int64 {
    max(MonotonicClock.microseconds(), latest.load(ordering: .acquiring))
  }

  /// Advances the clock to the time of a frame.
  ///
  /// The clock never goes back.
  func advance(toMicroseconds time: Int64) {
    latest.max(time, ordering: .acquiringAndReleasing)
  }

  /// Records that audio was delivered up to a time in microseconds.
  ///
  /// `.max` means that audio has no consumer.
  package func didHear(untilMicroseconds time: Int64) { heard.store(time, ordering: .releasing) }

  /// Whether a frame must wait because the audio up to the frame's time is not delivered yet.
  ///
  /// `due` is the frame's time and `period` the frame period, in microseconds.
  func isAheadOfAudio(atMicroseconds due: Int64, period: Int64) -> Bool {
    due &- period &- Self.lead > heard.load(ordering: .acquiring)
  }
}
