// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The sink of a preview, which only stores the newest frame on the capture thread.
///
/// ```
///   capture thread ─ take ─▶ one waiting frame ◀─ next ─ the thread that draws
/// ```
final class PreviewSink: FrameSink {
  /// The frame that waits to be drawn, in a buffer of the driver.
  struct Waiting {
    let heldBuffer: BufferPool.HeldBuffer
    let observation: FrameObservation
    let exposure: ExposureInForce
  }

  let pool: BufferPool
  let format: FormatDescription
  let geometry: ConnectionGeometry
  let gate: ConnectionGate
  private let counters: DataOutputCounters
  private let arrivals: ArrivalCounter
  private let waiting = Mutex<Waiting?>(nil)
  /// Signaled when a frame arrives and no other frame was waiting, and at the end of the stream.
  ///
  /// The view can wait for this signal instead of polling.
  private let arrived = DispatchSemaphore(value: 0)
  /// The number of driver buffers whose frames are being drawn.
  private let inUse = Atomic<Int>(0)
  private let maximumHeld = Atomic<Int>(0)
  /// Whether the stream has ended and no frame has arrived since.
  private let hasEnded = Atomic<Bool>(false)

  init(
    _ camera: DeviceInput, _ connection: CaptureConnection, _ counters: DataOutputCounters,
    _ arrivals: ArrivalCounter
  ) {
    pool = camera.pool
    format = FormatDescription(camera.delivery)
    geometry = connection.geometry
    gate = connection.gate
    (self.counters, self.arrivals) = (counters, arrivals)
  }

  // MARK: - The capture thread

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard gate.isOpen.load(ordering: .relaxed) else { return nil }
    hasEnded.store(false, ordering: .relaxed)
    counters.offered.wrappingAdd(1, ordering: .relaxed)
    arrivals.note(frame.observation)
    guard frame.isWhole else {
      counters.note(.corrupt)
      return nil
    }
    // The drawing thread holds the lock only while it takes a frame. If the drawing thread holds
    // the lock now, it takes the previous frame, and this new frame is dropped.
    var replacesFrame = false
    let isKept = waiting.withLockIfAvailable { waiting -> Bool in
      if let old = waiting.take() {
        replacesFrame = true
        pool.releaseOnCaptureThread(old.heldBuffer)
        counters.note(.frameWasLate)
      }
      let held = inUse.load(ordering: .acquiring)
      guard held < maximumHeld.load(ordering: .relaxed), let heldBuffer = frame.hold(in: pool)
      else { return false }
      waiting = Waiting(
        heldBuffer: heldBuffer, observation: frame.observation, exposure: frame.exposure)
      return true
    }
    if isKept == true, !replacesFrame { arrived.signal() }
    if isKept == nil { counters.note(.frameWasLate) }
    if isKept == false { counters.note(.outOfBuffers) }
    return nil
  }

  /// Always true, because a preview never makes a camera wait.
  func hasSpace(for byteCount: Int) -> Bool { true }

  var keeping: FrameKeeping { .always }

  func allow(keeping count: Int) { maximumHeld.store(count, ordering: .relaxed) }

  func end(_ end: CaptureEnd) {
    hasEnded.store(true, ordering: .releasing)
    arrived.signal()
    guard let last = waiting.withLock({ $0.take() }) else { return }
    pool.release(last.heldBuffer)
    counters.note(.frameWasLate)
  }

  // MARK: - The thread that draws

  /// Whether a frame waits to be drawn.
  var hasFrame: Bool { waiting.withLock { $0 != nil } }

  /// Blocks until a frame is available to be drawn.
  ///
  /// - Returns: False if no frame arrived before the deadline or the end of the stream.
  func waitForFrame(until deadline: DispatchTime) -> Bool {
    while !hasFrame {
      guard !hasEnded.load(ordering: .acquiring), arrived.wait(timeout: deadline) == .success
      else { return hasFrame }
    }
    return true
  }

  /// Calls a closure with the waiting frame, and then returns the frame's buffer to the driver.
  ///
  /// - Returns: The result, or nil if no frame waits.
  func withNext<Result>(_ body: (Waiting, UnsafeRawBufferPointer) -> Result) -> Result? {
    let next = waiting.withLock { waiting -> Waiting? in
      guard let next = waiting.take() else { return nil }
      inUse.wrappingAdd(1, ordering: .releasing)
      return next
    }
    guard let next else { return nil }
    // Consumes the old signals. Otherwise they would accumulate if the view never calls
    // `waitForFrame(until:)`.
    while arrived.wait(timeout: .now()) == .success {}
    defer {
      pool.release(next.heldBuffer)
      inUse.wrappingSubtract(1, ordering: .releasing)
    }
    return body(next, pool.bytes(of: next.heldBuffer))
  }
}
