// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore

/// Stores uncompressed frames with contiguous rows.
struct StorePipeline: VideoPipeline {
  let parameters: CodecParameters?
  private let byteCount: Int

  /// Creates a pipeline for the camera's format.
  ///
  /// Nil if the rows have padding, because it must be removed before the frame is stored.
  init?(delivery: FrameDelivery, frameRate: FrameRate) throws(LibAVError) {
    guard case .raw(let format, let bytesPerRow) = delivery.layout,
      let byteCount = MediaFrame.packedByteCount(
        width: delivery.width, height: delivery.height, pixelFormat: format,
        bytesPerRow: bytesPerRow)
    else { return nil }
    self.byteCount = byteCount
    var settings = Encoder.VideoSettings(
      codec: "rawvideo", width: delivery.width, height: delivery.height, pixelFormat: format,
      timescale: 1_000_000)
    settings.frameRate = frameRate
    settings.isFullRange = format.isFullRange
    // The encoder is created only for its codec parameters.
    parameters = try Encoder(video: settings).parameters
  }

  func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(LibAVError) -> FrameOutcome {
    guard bytes.count >= byteCount else { return .corrupt }
    try store(
      UnsafeRawBufferPointer(rebasing: bytes[..<byteCount]),
      VideoSample(time: microseconds, isKeyFrame: true), parameters)
    return .taken
  }
}
