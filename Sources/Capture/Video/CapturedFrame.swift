// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
public import OvercrankMediaCore
import Synchronization

/// A captured picture in the camera's own buffer, for as long as
/// ``VideoDataOutput/withNextFrame(_:)`` shows it.
///
/// It has what a ``SampleBuffer`` has, and is no object: to take one asks for no memory.
public struct CapturedFrame: ~Copyable, Sendable {
  /// What the bytes are.
  public let formatDescription: FormatDescription
  /// How long a frame lasts at the rate that the device granted.
  public let duration: MediaTime
  private let observation: FrameObservation
  private let exposure: ExposureInForce
  private let heldBuffer: BufferPool.HeldBuffer
  private let pool: BufferPool
  private let options: DataSink.Options

  init(
    _ observation: FrameObservation, _ exposure: ExposureInForce,
    _ heldBuffer: BufferPool.HeldBuffer, of pool: BufferPool, format: FormatDescription,
    duration: MediaTime, options: DataSink.Options
  ) {
    formatDescription = format
    self.duration = duration
    self.observation = observation
    self.exposure = exposure
    self.heldBuffer = heldBuffer
    self.pool = pool
    self.options = options
  }

  deinit {
    options.kept.wrappingSubtract(1, ordering: .relaxed)
    pool.release(heldBuffer)
  }

  /// When the frame was captured, in the capture clock (CLOCK_MONOTONIC), as the driver says.
  public var presentationTimeStamp: MediaTime { MediaTime(microseconds: observation.microseconds) }

  /// What else is known of the frame.
  public var attachments: SampleBuffer.Attachments {
    SampleBuffer.Attachments(observation, exposure)
  }

  /// Shows the bytes, which are valid inside the closure.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(pool.bytes(of: heldBuffer))
  }
}

extension VideoDataOutput {
  /// Waits for the next frame, and shows it to a closure.
  ///
  /// The blocking form of ``frames``, which asks for no memory and stays on the calling thread. The
  /// buffer goes back to the camera when the closure returns; while it works, frames are late. One
  /// thread at a time may ask, and none while a task or a closure takes the frames.
  ///
  /// - Parameter body: Shown the frame, on the calling thread.
  /// - Returns: What the closure returns; nil once the output has left its session and no frame
  ///   waits.
  /// - Throws: What the closure throws.
  public func withNextFrame<Result, Failure: Error>(
    _ body: (borrowing CapturedFrame) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let frame = delivery.waitForNext({ ($0 as? VideoSampleQueue)?.lend() }) else {
      return nil
    }
    return try body(frame)
  }
}
