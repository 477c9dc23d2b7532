// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankMediaCore

/// Stores uncompressed frames with contiguous rows.
struct StorePipeline: VideoPipeline {
  let parameters: CodecParameters?
  private let byteCount: Int
  private let delivery: FrameDelivery
  private let pixelFormat: LibAVPixelFormat
  private var factor = 1.0
  private let zoomed = Magnifier()

  private final class Magnifier {
    var magnifier = FrameMagnifier()
  }

  /// Creates a pipeline for the camera's format.
  ///
  /// Returns nil if the rows have padding, because the padding must not be stored.
  init?(delivery: FrameDelivery, frameRate: FrameRate) throws(CallFailure) {
    guard case .raw(let format, let bytesPerRow) = delivery.layout,
      let byteCount = MediaFrame.packedByteCount(
        width: delivery.width, height: delivery.height, pixelFormat: format,
        bytesPerRow: bytesPerRow)
    else { return nil }
    self.byteCount = byteCount
    self.delivery = delivery
    pixelFormat = format
    var settings = Encoder.VideoSettings(
      codec: "rawvideo", width: delivery.width, height: delivery.height, pixelFormat: format,
      timescale: 1_000_000)
    settings.frameRate = frameRate
    settings.isFullRange = format.isFullRange
    if !format.isRGB, !format.isGray, !format.isBayer {
      settings.colors = Encoder.ColorTags(delivery.matrix)
    }
    // This encoder encodes nothing. It is created only for its codec parameters.
    parameters = try Encoder(video: settings).parameters
  }

  mutating func zoom(to factor: Double) { self.factor = factor }

  func take(
    _ bytes: UnsafeRawBufferPointer, at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure) -> FrameOutcome {
    guard bytes.count >= byteCount else { return .corrupt }
    guard factor == 1 else {
      try storeImage(magnified(bytes), at: microseconds, store)
      return .taken
    }
    try store(
      UnsafeRawBufferPointer(rebasing: bytes[..<byteCount]),
      VideoSample(time: microseconds, isKeyFrame: true), parameters)
    return .taken
  }

  private func magnified(_ bytes: UnsafeRawBufferPointer) throws(CallFailure) -> [UInt8] {
    let frame = try MediaFrame.video(
      copying: bytes, width: delivery.width, height: delivery.height, pixelFormat: pixelFormat,
      bytesPerRow: 0)
    return try zoomed.magnifier.magnify(
      frame, by: factor, to: pixelFormat, isFullRange: frame.isFullRange, width: delivery.width,
      height: delivery.height
    ).packedBytes()
  }

  private func storeImage(
    _ bytes: [UInt8], at microseconds: Int64, _ store: SampleStore
  ) throws(CallFailure) {
    try bytes.span.withUnsafeBytes { (bytes) throws(CallFailure) in
      try store(bytes, VideoSample(time: microseconds, isKeyFrame: true), parameters)
    }
  }
}
