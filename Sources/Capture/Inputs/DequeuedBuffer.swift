// SPDX-License-Identifier: Apache-2.0

package import OvercrankFrameAccounting
package import OvercrankMediaCore

/// A frame in its driver's buffer, on its way past the sinks.
///
/// The buffer is given back when this value goes away, unless a sink holds it.
package struct DequeuedBuffer: ~Copyable {
  /// What the driver says of the frame, and what the capture thread saw of it.
  package internal(set) var observation: FrameObservation
  /// Whether the driver and the bytes agree that the whole frame is there.
  package internal(set) var isWhole = true
  /// How the camera exposed when the frame was taken.
  package let exposure: ExposureInForce
  /// The frame's bytes; valid until the buffer is given back.
  package let bytes: UnsafeRawBufferPointer
  /// The buffer's number, as its driver counts them.
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
    // `giveBack` reports an error, and `finish` leaves the buffer to those who hold it.
    if !isReturned { try? driver.requeue(index) }
  }

  /// Keeps the frame beyond the sink's call, until it is released.
  ///
  /// - Parameter pool: The pool of the frame's driver.
  /// - Returns: What to release it by; nil when too many are kept.
  package mutating func hold(in pool: BufferPool) -> BufferPool.HeldBuffer? {
    if let heldBuffer {
      pool.hold(heldBuffer)
    } else {
      heldBuffer = pool.hold(bytes, index: index)
    }
    return heldBuffer
  }

  /// Gives the buffer back now.
  ///
  /// - Throws: `MediaError` when the driver does not take it.
  package consuming func giveBack() throws(MediaError) {
    isReturned = true
    try driver.requeue(index)
  }

  /// Gives the buffer back, or leaves that to the last who holds it.
  ///
  /// - Throws: `MediaError` when the driver does not take it.
  consuming func finish(in pool: BufferPool) throws(MediaError) {
    if let heldBuffer, !pool.endHolding(heldBuffer) {
      isReturned = true
      return
    }
    try giveBack()
  }
}
