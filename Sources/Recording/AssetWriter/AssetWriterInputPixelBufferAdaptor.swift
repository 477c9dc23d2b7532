// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankMediaCore

/// Appends images from a buffer pool to a video input.
///
/// ```swift
/// let adaptor = try AssetWriterInputPixelBufferAdaptor(assetWriterInput: input)
/// var image = try adaptor.pixelBufferPool.makePixelBuffer()
/// image.withUnsafeMutableBytes(ofPlane: 0) { $0.initializeMemory(as: UInt8.self, repeating: 128) }
/// try adaptor.append(image, withPresentationTime: .zero)
/// ```
///
/// All calls may come from any thread.
public final class AssetWriterInputPixelBufferAdaptor: Sendable {
  /// The input that receives the images.
  public let assetWriterInput: AssetWriterInput
  /// The pool of images with the input's format and size.
  public let pixelBufferPool: PixelBufferPool

  /// Creates an adaptor for an input of uncompressed frames.
  ///
  /// - Throws: `MediaError` with `.codecRefused` if the input's frames are compressed or have padded
  ///   rows.
  public init(assetWriterInput: AssetWriterInput) throws(MediaError) {
    guard case .video(let format, _, _) = assetWriterInput.sourceFormatHint.content,
      case .pixels(let pixelFormat) = format.mediaSubType, format.bytesPerRow == 0
    else {
      throw MediaError(
        .codecRefused, "the input does not take uncompressed frames with packed rows",
        recovery: "create the input with a pixel format, and 0 bytes per row")
    }
    self.assetWriterInput = assetWriterInput
    pixelBufferPool = try PixelBufferPool(
      format: pixelFormat, width: format.width, height: format.height)
  }

  /// Appends an image, and returns the memory of the image to the pool.
  ///
  /// - Parameters:
  ///   - buffer: An image with the pool's format and size.
  ///   - time: The presentation time in the source's time.
  /// - Throws: `MediaError` with `.invalidData` for an image of another format or size, or as
  ///   ``AssetWriterInput/append(bytes:at:)`` does.
  public func append(
    _ buffer: consuming PixelBuffer, withPresentationTime time: MediaTime
  ) throws(MediaError) {
    let buffer = consume buffer
    defer { pixelBufferPool.recycle(buffer) }
    let pool = pixelBufferPool
    guard buffer.format == pool.format, buffer.width == pool.width, buffer.height == pool.height
    else {
      throw MediaError(
        .invalidData, "an image of \(buffer.width)x\(buffer.height) in \(buffer.format.rawValue)",
        recovery: "append images of the adaptor's pool")
    }
    try buffer.bytes.span.withUnsafeBytes { (bytes) throws(MediaError) in
      try assetWriterInput.append(bytes: bytes, at: time)
    }
  }
}
