// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
public import OvercrankMediaCore
import Synchronization

/// A captured frame in the camera's own buffer, valid during ``VideoDataOutput/withNextFrame(_:)``.
///
/// It has the same properties as ``SampleBuffer``, but its use allocates no memory.
public struct CapturedFrame: ~Copyable, Sendable {
  /// The pixel format or codec, and the size.
  public let formatDescription: FormatDescription
  /// The frame duration at the rate that the driver reports.
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

  /// The capture time that the driver reports, on the capture clock (`CLOCK_MONOTONIC`).
  public var presentationTimeStamp: MediaTime { MediaTime(microseconds: observation.microseconds) }

  /// Further information about the frame.
  public var attachments: SampleBuffer.Attachments {
    SampleBuffer.Attachments(observation, exposure)
  }

  /// Calls a closure with the bytes, which are valid only during the call.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(pool.bytes(of: heldBuffer))
  }
}

extension VideoDataOutput {
  /// Blocks until the next frame arrives and calls a closure with it.
  ///
  /// This is the blocking form of ``frames``. It allocates no memory and stays on the calling
  /// thread. The buffer returns to the camera when the closure returns. Frames that arrive during
  /// the closure may be dropped. Only one thread at a time may call this method, and only while no
  /// task or handler receives the frames.
  ///
  /// - Parameter body: Called with the frame on the calling thread.
  /// - Returns: The closure's result. Nil once the output has left its session and no frame is
  ///   queued.
  /// - Throws: The error that the closure throws.
  public func withNextFrame<Result, Failure: Error>(
    _ body: (borrowing CapturedFrame) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let frame = delivery.waitForNext({ ($0 as? VideoSampleQueue)?.takeFrame() }) else {
      return nil
    }
    return try body(frame)
  }
}
