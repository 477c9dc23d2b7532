// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
package import OvercrankFrameAccounting
package import OvercrankMediaCore
import Synchronization

/// Tracks the driver's buffers that sinks hold after the capture thread has passed them on.
///
/// Several holders may share a frame. The last holder to release it returns the buffer to the
/// driver. The capture thread holds and releases frames without a lock or allocation. Other threads
/// release under a lock, which the capture thread takes only to start and stop the stream. If a
/// buffer is still held when the stream starts, the driver must not fill it.
package final class BufferPool: Sendable {
  /// The state of one held frame.
  private struct Slot: ~Copyable {
    let isFree = Atomic<Bool>(true)
    let holders = Atomic<Int>(0)
    // The capture thread writes the index while the slot is free. Other threads read it only while
    // the frame is held.
    var index = 0
    var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// A reference to a held frame.
  package struct HeldBuffer: Sendable { fileprivate let slot: Int }

  package let driver: any FrameDriver
  /// The number of frames that may be held at a time, which is half of the driver's buffers.
  ///
  /// The other half stays in the driver, so that it always has a buffer to fill.
  package let capacity: Int
  // Access is safe without a lock: the atomic fields of a slot determine which thread may use it.
  private nonisolated(unsafe) let slots: UnsafeMutablePointer<Slot>
  private enum Stream { case off, on, closed }
  private let stream = Mutex(Stream.off)

  package init(_ driver: any FrameDriver) {
    self.driver = driver
    capacity = driver.bufferCount / 2
    slots = .allocate(capacity: max(1, capacity))
    for slot in 0..<capacity { (slots + slot).initialize(to: Slot()) }
  }

  deinit {
    slots.deinitialize(count: capacity)
    slots.deallocate()
  }

  /// The number of frames held now.
  package var heldCount: Int {
    (0..<capacity).count { !slots[$0].isFree.load(ordering: .acquiring) }
  }

  /// Starts the stream.
  ///
  /// The driver must not fill the buffers that are still held.
  package func start() throws(MediaError) {
    try stream.withLock { (stream) throws(MediaError) in
      guard stream != .closed else {
        throw MediaError(
          .deviceLost, "the device was closed and could not be reopened",
          recovery: "reconnect the device and start again")
      }
      let held = (0..<capacity).filter { !slots[$0].isFree.load(ordering: .acquiring) }
      try driver.start(keeping: held.map { slots[$0].index })
      stream = .on
    }
  }

  /// Stops the stream.
  ///
  /// Held frames stay readable.
  package func stop() {
    stream.withLock { stream in
      if stream == .on { stream = .off }
      driver.stop()
    }
  }

  /// Releases the driver's buffers for good, so that the device can be reopened.
  ///
  /// Held frames stay readable and keep the driver alive until they are released.
  func close() {
    stream.withLock { stream in
      guard stream != .closed else { return }
      stream = .closed
      driver.release()
      if heldCount == 0 { driver.abandon() }
    }
  }

  /// Whether the pool was closed and the driver can no longer stream.
  var isClosed: Bool { stream.withLock { $0 == .closed } }

  /// Holds a frame for two holders: the capture thread and the sink that called.
  ///
  /// Returns nil if ``capacity`` frames are already held.
  ///
  /// Call this only on the capture thread.
  func hold(_ bytes: UnsafeRawBufferPointer, index: Int) -> HeldBuffer? {
    for slot in 0..<capacity where slots[slot].isFree.load(ordering: .acquiring) {
      slots[slot].index = index
      slots[slot].bytes = bytes
      slots[slot].holders.store(2, ordering: .relaxed)
      slots[slot].isFree.store(false, ordering: .releasing)
      return HeldBuffer(slot: slot)
    }
    return nil
  }

  /// Adds a holder to a held frame.
  func hold(_ heldBuffer: HeldBuffer) {
    slots[heldBuffer.slot].holders.wrappingAdd(1, ordering: .relaxed)
  }

  /// Whether the caller is the only holder.
  ///
  /// Only a holder can add another holder, so the value stays true until the caller adds one.
  func hasOneHolder(_ heldBuffer: HeldBuffer) -> Bool {
    slots[heldBuffer.slot].holders.load(ordering: .acquiring) == 1
  }

  /// The bytes of a frame, valid while the frame is held.
  package func bytes(of heldBuffer: HeldBuffer) -> UnsafeRawBufferPointer {
    slots[heldBuffer.slot].bytes
  }

  /// The driver's index of a frame's buffer.
  func index(of heldBuffer: HeldBuffer) -> Int { slots[heldBuffer.slot].index }

  /// Releases the hold that a sink took earlier in the same call of `take(_:)`.
  ///
  /// The capture thread still holds the frame.
  package func cancelHold(_ heldBuffer: HeldBuffer) { _ = releaseHold(heldBuffer) }

  /// Ends the capture thread's hold of a frame.
  ///
  /// Returns true if there was no other holder, so that the caller must requeue the buffer.
  func endHolding(_ heldBuffer: HeldBuffer) -> Bool {
    guard releaseHold(heldBuffer) else { return false }
    slots[heldBuffer.slot].isFree.store(true, ordering: .releasing)
    return true
  }

  /// Releases a frame that a sink has held since an earlier frame.
  ///
  /// Call this only in `FrameSink.take(_:)`. The stream is on then and stays on during the call, so
  /// no lock is needed.
  package func releaseOnCaptureThread(_ heldBuffer: HeldBuffer) {
    guard releaseHold(heldBuffer) else { return }
    // Requeueing fails only if the driver has failed. The capture thread detects that itself.
    try? driver.requeue(slots[heldBuffer.slot].index)
    slots[heldBuffer.slot].isFree.store(true, ordering: .releasing)
  }

  /// Releases a frame.
  ///
  /// Any thread may call this. While the stream is on, the capture thread must not, because this
  /// call takes the lock.
  package func release(_ heldBuffer: HeldBuffer) {
    guard releaseHold(heldBuffer) else { return }
    stream.withLock { stream in
      // Requeueing fails only if the driver has failed. The capture thread detects that itself.
      if stream == .on { try? driver.requeue(slots[heldBuffer.slot].index) }
      slots[heldBuffer.slot].isFree.store(true, ordering: .releasing)
      if stream == .closed, heldCount == 0 { driver.abandon() }
    }
  }

  private func releaseHold(_ heldBuffer: HeldBuffer) -> Bool {
    slots[heldBuffer.slot].holders.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue
      == 0
  }
}

/// A dequeued driver buffer with a captured frame, passed to the sinks.
///
/// When this value is destroyed, the buffer is requeued in the driver, unless a sink holds the
/// frame.
package struct DequeuedBuffer: ~Copyable {
  /// The driver's metadata about the frame, and the times that the capture thread measured for it.
  package internal(set) var observation: FrameObservation
  /// Whether the frame is complete: neither the driver nor the check of its bytes found damage.
  package internal(set) var isWhole = true
  /// Whether the frame was not decoded, because decoding is too slow or needs a key frame first.
  ///
  /// The frame is then not whole, and has no bytes.
  package let isSkipped: Bool
  /// The reason for which an output drops the frame if it is not whole.
  package var dropReason: FrameDropReason { isSkipped ? .frameWasLate : .corrupt }
  /// The camera's exposure settings when the frame was dequeued.
  package let exposure: ExposureInForce
  /// The frame's bytes, valid until the buffer is requeued.
  package let bytes: UnsafeRawBufferPointer
  /// The driver's index of the buffer.
  package let index: Int
  private let driver: any FrameDriver
  private var heldBuffer: BufferPool.HeldBuffer?
  private var isReturned = false

  package init(
    _ observation: FrameObservation, exposure: ExposureInForce = ExposureInForce(),
    bytes: UnsafeRawBufferPointer, index: Int, isSkipped: Bool = false, driver: any FrameDriver
  ) {
    (self.observation, self.exposure, self.bytes) = (observation, exposure, bytes)
    (self.index, self.isSkipped, self.driver) = (index, isSkipped, driver)
  }

  deinit {
    // After `giveBack` or `finish`, this value no longer owns the buffer. Then the driver or a sink
    // has the buffer.
    if !isReturned { try? driver.requeue(index) }
  }

  /// Holds the frame after the sink's call, until it is released.
  ///
  /// - Parameter pool: The buffer pool of the frame's driver.
  /// - Returns: The reference that releases the frame, or nil if too many frames are held.
  package mutating func hold(in pool: BufferPool) -> BufferPool.HeldBuffer? {
    if let heldBuffer {
      pool.hold(heldBuffer)
    } else {
      heldBuffer = pool.hold(bytes, index: index)
    }
    return heldBuffer
  }

  /// Requeues the buffer now.
  ///
  /// - Throws: `MediaError` if the driver rejects the buffer.
  package consuming func giveBack() throws(MediaError) {
    isReturned = true
    try driver.requeue(index)
  }

  /// Requeues the buffer or, if sinks hold the frame, lets the last of them requeue it.
  ///
  /// - Throws: `MediaError` if the driver rejects the buffer.
  consuming func finish(in pool: BufferPool) throws(MediaError) {
    if let heldBuffer, !pool.endHolding(heldBuffer) {
      isReturned = true
      return
    }
    try giveBack()
  }
}
