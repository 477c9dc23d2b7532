// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The sink of a metadata output.
///
/// On the capture thread it only keeps the newest frame.
///
/// ```
///   capture thread ─ take ─▶ one waiting frame ◀─ next ─ the worker that searches
/// ```
final class MetadataSink: FrameSink {
  /// A frame in a buffer of the driver.
  struct Waiting {
    let heldBuffer: BufferPool.HeldBuffer
    let observation: FrameObservation
    /// The number of frames since the first frame of the stream, according to the driver's counter.
    let index: Int64
    /// The time of the first frame of the stream, in microseconds.
    let start: Int64
  }

  let pool: BufferPool
  let format: FormatDescription
  let frameDuration: MediaTime
  let gate: ConnectionGate
  /// Whether the source waits until the worker has taken each frame.
  let isWaitedFor: Bool
  private let counters: MetadataCounters
  private let wake: DispatchSemaphore
  private let waiting = Mutex<Waiting?>(nil)
  /// The number of frames that the worker is searching: one or none.
  private let inUse = Atomic<Int>(0)
  private let maximumHeld = Atomic<Int>(0)
  /// Whether the output was removed or released; the sink then keeps no more frames.
  private let isRetired = Atomic<Bool>(false)
  // Used only by the capture thread.
  private nonisolated(unsafe) var lastSequence: UInt32?
  private nonisolated(unsafe) var index: Int64 = 0
  private nonisolated(unsafe) var start: Int64?

  init(
    _ camera: DeviceInput, _ connection: CaptureConnection, _ counters: MetadataCounters,
    wake: DispatchSemaphore
  ) {
    pool = camera.pool
    format = FormatDescription(camera.delivery)
    frameDuration = camera.negotiatedFrameRate.frameDuration
    gate = connection.gate
    isWaitedFor = camera.pool.driver.waitsForTakers
    (self.counters, self.wake) = (counters, wake)
  }

  // MARK: - The capture thread

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    if let lastSequence {
      let step = frame.observation.sequence &- lastSequence
      // If the driver's frame counter went backwards, the counter was restarted.
      index += step < 1 << 31 ? Int64(step) : 1
    }
    lastSequence = frame.observation.sequence
    let start = start ?? frame.observation.microseconds
    self.start = start
    guard gate.isOpen.load(ordering: .relaxed) else { return nil }
    counters.offered.wrappingAdd(1, ordering: .relaxed)
    guard frame.isWhole else {
      counters.corrupt.wrappingAdd(1, ordering: .relaxed)
      return nil
    }
    // The worker holds the lock only while it takes a frame. If it does so at this moment, the new
    // frame is skipped and the worker searches the one before it.
    let isKept = waiting.withLockIfAvailable { waiting -> Bool in
      if let old = waiting.take() {
        pool.releaseOnCaptureThread(old.heldBuffer)
        counters.skipped.wrappingAdd(1, ordering: .relaxed)
      }
      guard !isRetired.load(ordering: .acquiring) else { return false }
      let held = inUse.load(ordering: .acquiring)
      guard held < maximumHeld.load(ordering: .relaxed), let heldBuffer = frame.hold(in: pool)
      else { return false }
      waiting = Waiting(
        heldBuffer: heldBuffer, observation: frame.observation, index: index, start: start)
      return true
    }
    if isKept == true { wake.signal() } else { counters.skipped.wrappingAdd(1, ordering: .relaxed) }
    return nil
  }

  /// Whether the sink can take a frame; until it can, a source that waits for its consumers waits
  /// for the worker.
  func hasSpace(for byteCount: Int) -> Bool {
    guard gate.isOpen.load(ordering: .relaxed), !isRetired.load(ordering: .acquiring)
    else { return true }
    return waiting.withLock { $0 == nil }
      && inUse.load(ordering: .acquiring) < maximumHeld.load(ordering: .relaxed)
  }

  var keeping: FrameKeeping { .always }

  func allow(keeping count: Int) { maximumHeld.store(count, ordering: .relaxed) }

  /// Does nothing, because the last frame is still searched after the capture ends.
  func end(_ end: CaptureEnd) {}

  // MARK: - The worker

  /// Releases the waiting frame, and keeps no more frames.
  func retire() {
    isRetired.store(true, ordering: .releasing)
    guard let last = waiting.withLock({ $0.take() }) else { return }
    pool.release(last.heldBuffer)
    counters.skipped.wrappingAdd(1, ordering: .relaxed)
  }

  /// Whether a frame waits for the search or is being searched.
  var isBusy: Bool {
    // The worker counts a frame as in use before it stops counting as waiting, so no frame is
    // missed here.
    waiting.withLock { $0 != nil } || inUse.load(ordering: .acquiring) > 0
  }

  /// Calls a closure with the waiting frame, and then releases the frame's buffer.
  ///
  /// - Returns: Whether a frame was waiting.
  func withNext(_ body: (Waiting, UnsafeRawBufferPointer) -> Void) -> Bool {
    let next = waiting.withLock { waiting -> Waiting? in
      guard let next = waiting.take() else { return nil }
      inUse.wrappingAdd(1, ordering: .releasing)
      return next
    }
    guard let next else { return false }
    body(next, pool.bytes(of: next.heldBuffer))
    pool.release(next.heldBuffer)
    inUse.wrappingSubtract(1, ordering: .releasing)
    return true
  }
}
