// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
public import OvercrankMediaCore
package import OvercrankV4L2
import Synchronization

/// A captured frame in the camera's own buffer, valid during ``VideoDataOutput/withNextFrame(_:)``.
///
/// It has the same properties as ``SampleBuffer``, but its use allocates no memory. If the output
/// converts frames, the frame is not in the camera's buffer but in the output's own memory.
public struct CapturedFrame: ~Copyable, Sendable {
  /// The pixel format or codec, and the size.
  public let formatDescription: FormatDescription
  /// The frame duration at the rate that the driver reports.
  public let duration: MediaTime
  /// The capture time that the driver reports, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  private let storage: Storage

  /// A frame in the camera's buffer.
  private struct Held {
    let observation: FrameObservation
    let exposure: ExposureInForce
    let zoom: FrameZoom
    let buffer: BufferPool.HeldBuffer
    let pool: BufferPool
    let options: DataSink.Options
  }

  private enum Storage {
    case held(Held)
    case converted(SampleBuffer)
  }

  init(
    _ observation: FrameObservation, _ exposure: ExposureInForce, _ zoom: FrameZoom,
    _ heldBuffer: BufferPool.HeldBuffer, of pool: BufferPool, format: FormatDescription,
    duration: MediaTime, options: DataSink.Options
  ) {
    formatDescription = format
    self.duration = duration
    presentationTimeStamp = MediaTime(microseconds: observation.microseconds)
    storage = .held(
      Held(
        observation: observation, exposure: exposure, zoom: zoom, buffer: heldBuffer, pool: pool,
        options: options))
  }

  /// Creates a frame from a converted sample.
  init(_ sample: SampleBuffer) {
    formatDescription = sample.formatDescription
    duration = sample.duration
    presentationTimeStamp = sample.presentationTimeStamp
    storage = .converted(sample)
  }

  deinit {
    guard case .held(let held) = storage else { return }
    held.options.kept.wrappingSubtract(1, ordering: .relaxed)
    held.pool.release(held.buffer)
  }

  /// Further information about the frame.
  public var attachments: SampleBuffer.Attachments {
    switch storage {
    case .held(let held): SampleBuffer.Attachments(held.observation, held.exposure, held.zoom)
    case .converted(let sample): sample.attachments
    }
  }

  /// Calls a closure with the bytes, which are valid only during the call.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    switch storage {
    case .held(let held): try body(held.pool.bytes(of: held.buffer))
    case .converted(let sample): try sample.withBytes(body)
    }
  }
}

extension VideoDataOutput {
  /// Blocks until the next frame arrives and calls a closure with it.
  ///
  /// This is the blocking form of ``frames``. The call allocates no memory. All work is done on the
  /// calling thread, including the conversion of frames if the output has ``videoSettings``. The
  /// buffer returns to the camera when the closure returns. Frames that arrive during the closure
  /// may be dropped. Only one thread at a time may call this method, and only while no task or
  /// handler receives the frames.
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

/// A buffer of a camera, held by a sample.
package struct CameraBuffer {
  /// The camera's buffer pool, which is replaced when the camera is reopened.
  package let pool: BufferPool
  /// The driver's index of the buffer.
  package let index: Int

  /// Exports the buffer for other devices, such as a GPU.
  ///
  /// Call this only while the sample that holds the buffer exists.
  ///
  /// - Returns: The buffer, or nil if the frames are in this program's own memory.
  /// - Throws: `MediaError` if the driver cannot export it.
  package func export() throws(MediaError) -> ExportedBuffer? { try pool.driver.export(index) }
}
