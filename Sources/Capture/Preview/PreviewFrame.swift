// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// A frame that a preview shows.
///
/// When this object is released, the memory of its image is reused for a later frame.
public final class PreviewFrame: Sendable {
  /// The image, rotated, mirrored and cropped by the settings of the connection.
  public let image: PixelBuffer
  /// The driver's frame counter, which wraps at 2^32.
  public let sequence: UInt32
  /// The capture time, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The manual exposure duration of the frame.
  ///
  /// Nil if exposure is automatic or unknown, and for frames of a ``DelayedVideoPreview``.
  public let exposureDuration: MediaTime?
  private let pool: PixelBufferPool

  init(
    _ image: PixelBuffer, of pool: PixelBufferPool, sequence: UInt32, at time: MediaTime,
    exposureDuration: MediaTime?
  ) {
    self.image = image
    self.pool = pool
    self.sequence = sequence
    presentationTimeStamp = time
    self.exposureDuration = exposureDuration
  }

  deinit { pool.recycle(image) }
}
