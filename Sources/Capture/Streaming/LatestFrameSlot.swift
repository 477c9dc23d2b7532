// SPDX-License-Identifier: Apache-2.0

package import OvercrankFrameAccounting
import Synchronization

/// The newest frame of a camera, which waits in a buffer of the driver for its consumer.
///
/// A newer frame replaces it. All other frames are only counted.
///
/// ```
///   capture thread ─ put ─▶ one waiting frame ◀─ withNext ─ the consumer's thread
/// ```
package final class LatestFrameSlot<Note: Sendable>: Sendable {
  /// A frame in a buffer of the driver.
  package struct Frame: Sendable {
    fileprivate let heldBuffer: BufferPool.HeldBuffer
    package let observation: FrameObservation
    package let exposure: ExposureInForce
    /// A note of the capture thread about the frame.
    package let note: Note
  }

  /// The effect of a new frame.
  package enum Effect {
    /// The frame waits, and no frame was waiting before.
    case filled
    /// The frame waits in place of an earlier one.
    case replaced
    /// The frame was only counted.
    case counted
  }

  private let pool: BufferPool
  private let counters: DataOutputCounters
  private let waiting = Mutex<Frame?>(nil)
  /// The number of frames that the consumer uses at this moment.
  private let inUse = Atomic<Int>(0)
  private let maximumHeld = Atomic<Int>(0)
  private let closed = Atomic<Bool>(false)

  package init(of pool: BufferPool, _ counters: DataOutputCounters) {
    (self.pool, self.counters) = (pool, counters)
  }

  // MARK: - The capture thread

  /// Counts a frame, and lets it wait if it is complete and may be held.
  package func put(_ frame: inout DequeuedBuffer, _ note: Note) -> Effect {
    counters.offered.wrappingAdd(1, ordering: .relaxed)
    guard frame.isWhole else {
      counters.note(frame.dropReason)
      return .counted
    }
    var effect = Effect.filled
    // The consumer holds the lock only while it takes a frame. If it holds the lock now, it takes
    // the previous frame, and this new frame is dropped.
    let isKept = waiting.withLockIfAvailable { waiting -> Bool in
      if let old = waiting.take() {
        effect = .replaced
        pool.releaseOnCaptureThread(old.heldBuffer)
        counters.note(.frameWasLate)
      }
      guard !isClosed, canHold, let heldBuffer = frame.hold(in: pool)
      else { return false }
      waiting = Frame(
        heldBuffer: heldBuffer, observation: frame.observation, exposure: frame.exposure,
        note: note)
      return true
    }
    if isKept == true { return effect }
    counters.note(isKept == nil ? .frameWasLate : .outOfBuffers)
    return .counted
  }

  /// Whether a frame could wait without replacing another.
  package var hasSpace: Bool { isEmpty && canHold }

  private var canHold: Bool {
    inUse.load(ordering: .acquiring) < maximumHeld.load(ordering: .relaxed)
  }

  // MARK: - Any thread

  /// Sets the number of buffers that the slot and its consumer may hold together.
  package func allow(keeping count: Int) { maximumHeld.store(count, ordering: .relaxed) }

  /// Whether no frame waits.
  package var isEmpty: Bool { waiting.withLock { $0 == nil } }

  /// Whether a frame waits or is in use.
  package var isBusy: Bool {
    // A frame counts as in use before it stops waiting, so no frame is missed here.
    !isEmpty || inUse.load(ordering: .acquiring) > 0
  }

  /// Releases the waiting frame.
  package func clear() {
    guard let last = waiting.withLock({ $0.take() }) else { return }
    pool.release(last.heldBuffer)
    counters.note(.frameWasLate)
  }

  /// Releases the waiting frame, and keeps no later frames.
  package func close() {
    closed.store(true, ordering: .releasing)
    clear()
  }

  /// Whether the slot keeps no more frames.
  package var isClosed: Bool { closed.load(ordering: .acquiring) }

  /// Calls a closure with the waiting frame, and then returns the frame's buffer to the driver.
  ///
  /// - Returns: The result, or nil if no frame waits.
  package func withNext<Result>(_ body: (Frame, UnsafeRawBufferPointer) -> Result) -> Result? {
    let next = waiting.withLock { waiting -> Frame? in
      guard let next = waiting.take() else { return nil }
      inUse.wrappingAdd(1, ordering: .releasing)
      return next
    }
    guard let next else { return nil }
    defer {
      pool.release(next.heldBuffer)
      inUse.wrappingSubtract(1, ordering: .releasing)
    }
    return body(next, pool.bytes(of: next.heldBuffer))
  }
}
