// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
package import OvercrankDeviceDiscovery
import OvercrankMediaCore

/// An estimate of the resources that a recording in a capture mode needs.
package struct RecordingDemand: Hashable, Sendable {
  /// The data rate of the movie in bytes per second, with the default codec.
  ///
  /// The rate is a typical value, which complex images may double.
  package let bytesPerSecond: Int64
  /// The data rate from the camera in bytes per second; nil for compressed frames, whose size the
  /// camera chooses.
  package let transferBytesPerSecond: Int64?
  /// The size of the writer's queue in bytes.
  package let queueBytes: Int64

  /// Estimates the needs of a recording with default settings, in a mode at its highest frame rate.
  package init(_ format: CaptureFormat) {
    let pixels = Double(format.width) * Double(format.height)
    let rate = format.maxFrameRate.doubleValue
    let isH264 = format.fourcc.isNamed("h264")
    let bitsPerPixel = format.known.map { Double($0.bitsPerPixel) }.flatMap { $0 > 0 ? $0 : nil }
    bytesPerSecond = Int64(saturating: pixels * (isH264 ? 0.3 : 1) / 8 * rate)
    let frame = pixels * (bitsPerPixel ?? 16) / 8
    transferBytesPerSecond = bitsPerPixel.map { Int64(saturating: pixels * $0 / 8 * rate) }
    queueBytes = Int64(
      FrameQueue.byteCount(
        largestFrame: Int(Int64(saturating: frame)), frameRate: format.maxFrameRate))
  }
}
