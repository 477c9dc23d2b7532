// SPDX-License-Identifier: Apache-2.0

package import OvercrankFrameAccounting
package import OvercrankMediaCore

/// A dequeued driver buffer with a captured frame, passed to the sinks.
///
/// When this value is destroyed, the buffer is requeued in the driver, unless a sink holds the
/// frame.
package struct DequeuedBuffer: ~Copyable {
  /// The driver's metadata about the frame, and the times that the capture thread measured for it.
  package internal(set) var observation: FrameObservation
  /// Whether the frame is complete: neither the driver nor the check of its bytes found damage.
  package internal(set) var isWhole = true
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
    bytes: UnsafeRawBufferPointer, index: Int, driver: any FrameDriver
  ) {
    self.observation = observation
    self.exposure = exposure
    self.bytes = bytes
    self.index = index
    self.driver = driver
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
