// SPDX-License-Identifier: Apache-2.0

package import OvercrankCameraControls
package import OvercrankLibAV
import OvercrankLinuxSystem
package import OvercrankMediaCore
package import OvercrankV4L2

/// A source of frames with the buffer protocol of V4L2: dequeue and requeue.
///
/// One thread dequeues. Any thread may requeue.
package protocol FrameDriver: AnyObject, Sendable {
  /// The number of the driver's buffers.
  var bufferCount: Int { get }

  /// Whether the driver's sequence numbers are reliable, so that losses need not be derived from
  /// timestamps.
  var countsExactly: Bool { get }
  /// The guard that prevents exposures longer than a frame while the stream is on.
  ///
  /// Nil if the camera needs none.
  var exposureGuard: ExposureGuard? { get }
  /// Whether the driver waits until its frames are consumed.
  ///
  /// If true, the capture loop waits until every sink has space, and no sink loses a frame.
  var waitsForTakers: Bool { get }
  /// Whether the source has no more frames, such as a file played to its end.
  ///
  /// The value is valid once ``dequeue(timeoutMilliseconds:)`` has returned nil.
  var hasEnded: Bool { get }
  /// Why a capture ends when the source has ended.
  var endReason: StopReason { get }
  /// The duration of the last frame in microseconds, if the source has ended and defines it.
  ///
  /// Nil before the end, for an endless source, and for a source that does not define it.
  var lastFrameDuration: Int64? { get }
  /// Whether the frames are made from those of another driver.
  ///
  /// They are made on the thread that dequeues them, which therefore has ordinary priority. The
  /// capture of the other driver finds a device that delivers no frames.
  var derivesFrames: Bool { get }
  /// The current time on the clock of the driver's timestamps, in microseconds.
  func microseconds() -> Int64

  /// Starts the stream.
  ///
  /// - Parameter held: The indices of buffers that are still held. The driver must not fill them
  ///   until they are requeued.
  /// - Throws: `MediaError` if the device is busy, lost or fails.
  func start(keeping held: [Int]) throws(MediaError)

  /// Waits for the next frame until a timeout.
  ///
  /// - Returns: The frame. Nil at the timeout, or if ``hasEnded`` is true.
  /// - Throws: `MediaError` if the device is lost or has failed.
  func dequeue(timeoutMilliseconds: Int32) throws(MediaError) -> DequeuedBuffer?

  /// Returns a buffer to the driver, which may fill it again.
  func requeue(_ index: Int) throws(MediaError)

  /// Exports a buffer for other devices, such as a GPU.
  ///
  /// Call this only while the buffer is held.
  ///
  /// - Returns: The buffer, or nil if the frames are in this program's own memory.
  /// - Throws: `MediaError` if the driver cannot export it.
  func export(_ index: Int) throws(MediaError) -> ExportedBuffer?

  /// Stops the stream.
  ///
  /// Held buffers stay readable until the driver is destroyed.
  func stop()

  /// Releases the device for good, so that another driver can open it.
  ///
  /// Call this only after ``stop()``.
  func release()

  /// Crops the image around its center and scales the crop to the size of the frames.
  ///
  /// - Parameter factor: The zoom factor, at least 1. 1 restores the whole image.
  /// - Returns: The factor in force. Nil if the driver cannot crop; the image is then whole.
  func zoom(to factor: Double) -> Double?

  /// The zoom factor above which a frame has more pixels than the crop; at least 1.
  ///
  /// Nil if the driver cannot crop.
  var zoomUpscaleThreshold: Double? { get }

  /// Reverses the columns or rows of the image until the stream stops.
  ///
  /// Call this only while the stream is off.
  ///
  /// - Parameter flips: The reversed directions. Rows and columns are not exchanged.
  /// - Returns: Whether the driver accepts the flips.
  func flip(_ flips: FrameRotation) -> Bool

  /// Switches image stabilization on or off until the stream stops, if the camera has it.
  func stabilize(_ isOn: Bool)

  /// Whether the camera stabilizes the image, or nil if it cannot.
  var isStabilizing: Bool? { get }

  /// Releases the memory and the device. Called after ``release()``, when no buffer is held.
  func abandon()
}

extension FrameDriver {
  package var countsExactly: Bool { false }
  package var exposureGuard: ExposureGuard? { nil }
  package var waitsForTakers: Bool { false }
  package var hasEnded: Bool { false }
  package var endReason: StopReason { .duration }
  package var lastFrameDuration: Int64? { nil }
  package var derivesFrames: Bool { false }
  package func microseconds() -> Int64 { MonotonicClock.microseconds() }
  package func export(_ index: Int) throws(MediaError) -> ExportedBuffer? { nil }
  package func release() {}
  package func abandon() {}
  package func zoom(to factor: Double) -> Double? { nil }
  package var zoomUpscaleThreshold: Double? { nil }
  package func flip(_ flips: FrameRotation) -> Bool { false }
  package func stabilize(_ isOn: Bool) {}
  package var isStabilizing: Bool? { nil }
}

/// The frame format that the driver selected.
package struct FrameDelivery: Sendable {
  /// The interpretation of a frame's bytes.
  package enum Layout: Sendable, Equatable {
    /// A frame compressed by the camera.
    case compressed(VideoCodec)
    /// Uncompressed pixels. `bytesPerRow` is the stride of the first plane, or 0 for packed rows.
    case raw(LibAVPixelFormat, bytesPerRow: Int)
  }

  package let layout: Layout
  package let width: Int
  package let height: Int
  /// The matrix of YUV frames; nil if it is unknown.
  package let matrix: MediaFrame.Matrix?
  /// The check that detects truncated frames.
  package let integrityCheck: FrameIntegrityCheck

  /// Whether frames are compressed by the camera.
  package var isCompressed: Bool {
    if case .compressed = layout { true } else { false }
  }

  package init(
    layout: Layout, width: Int, height: Int, matrix: MediaFrame.Matrix? = nil
  ) throws(CallFailure) {
    (self.layout, self.matrix) = (layout, matrix)
    (self.width, self.height) = (width, height)
    switch layout {
    case .compressed(let codec):
      integrityCheck = FrameIntegrityCheck(byteCount: nil, isJPEG: codec == .mjpeg)
    case .raw(let format, let bytesPerRow):
      let count = try MediaFrame.byteCount(
        width: width, height: height, pixelFormat: format, bytesPerRow: bytesPerRow)
      integrityCheck = FrameIntegrityCheck(byteCount: count, isJPEG: false)
    }
  }
}
