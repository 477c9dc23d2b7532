// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// A pool of images of one pixel format and size, whose memory is reused.
///
/// All calls may come from any thread.
public final class PixelBufferPool: Sendable {
  /// The pixel format of the images.
  public let format: PixelFormat
  /// The width of the images in pixels.
  public let width: Int
  /// The height of the images in pixels.
  public let height: Int
  /// The greatest number of unused images that the pool keeps.
  public let maximumBufferCount: Int

  private let pixelFormat: LibAVPixelFormat
  private let unused = Mutex<[PixelBuffer]>([])

  /// Creates a pool without images.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for an unknown pixel format or an invalid size.
  public init(
    format: PixelFormat, width: Int, height: Int, maximumBufferCount: Int = 8
  ) throws(MediaError) {
    guard let pixelFormat = LibAVPixelFormat(format),
      [width, height].allSatisfy((1...65_535).contains),
      (try? PixelBuffer(pixelFormat, width: width, height: height)) != nil
    else {
      throw MediaError(
        .notConvertible, "no images of \(width)x\(height) in \(format.rawValue)",
        recovery: "use an FFmpeg name, such as nv12, and sides of 1 to 65535")
    }
    (self.format, self.pixelFormat) = (format, pixelFormat)
    (self.width, self.height) = (width, height)
    self.maximumBufferCount = maximumBufferCount
  }

  /// Returns an unused image, or a new one if there is none.
  ///
  /// Its bytes are undefined.
  ///
  /// - Throws: `MediaError` with `.outOfMemory`.
  public func makePixelBuffer() throws(MediaError) -> PixelBuffer {
    if let buffer = unused.withLock({ $0.popLast() }) { return buffer }
    return try CallStage.resources.converting { () throws(CallFailure) in
      try PixelBuffer(pixelFormat, width: width, height: height)
    }
  }

  /// Returns an image to the pool, so that its memory is reused.
  ///
  /// Images of another format or size, and those beyond ``maximumBufferCount``, are freed. A copy
  /// that the program still has keeps its content.
  public func recycle(_ buffer: consuming PixelBuffer) {
    guard buffer.format == format, buffer.width == width, buffer.height == height else { return }
    let buffer = consume buffer
    unused.withLock { if $0.count < maximumBufferCount { $0.append(buffer) } }
  }
}
