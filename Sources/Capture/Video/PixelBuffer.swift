// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

/// An image in memory of its own, rows and planes packed one behind the other.
public struct PixelBuffer: Hashable, Sendable {
  /// How its pixels are stored.
  public let format: PixelFormat
  /// Pixels from left to right.
  public let width: Int
  /// Pixels from top to bottom.
  public let height: Int
  /// The planes, one after the other.
  public let bytes: [UInt8]
}

extension SampleBuffer {
  /// The frame in another pixel format, of the same size; decoded where it is compressed.
  ///
  /// Code values are those of the video range for 4:2:0 formats, and 0 to 255 for RGB and gray
  /// (libswscale, BT.601 where the camera does not say). H.264 cannot be converted frame by frame.
  ///
  /// - Throws: `MediaError` with `.notConvertible` where the frame is damaged or of a codec whose
  ///   frames need each other, and for a format that libswscale does not make.
  public func pixelBuffer(as format: PixelFormat) throws(MediaError) -> PixelBuffer {
    try converted(to: format) { frame throws(LibAVError) in
      PixelBuffer(
        format: format, width: frame.width, height: frame.height, bytes: try frame.packedBytes())
    }
  }

  /// The frame as a PNG file, in RGB with 8 bits each.
  ///
  /// - Throws: `MediaError` as ``pixelBuffer(as:)``.
  public func pngData() throws(MediaError) -> [UInt8] {
    try converted(to: .rgb24) { frame throws(LibAVError) in try frame.pngBytes() }
  }

  private func converted<Result>(
    to format: PixelFormat, _ body: (borrowing MediaFrame) throws(LibAVError) -> Result
  ) throws(MediaError) -> Result {
    do throws(LibAVError) {
      return try withBytes { bytes throws(LibAVError) in
        try converters.convert(bytes, formatDescription, to: format, body)
      }
    } catch {
      throw MediaError(
        .notConvertible, "a captured frame cannot be had as \(format.rawValue): \(error)",
        recovery: "take the bytes as they are, or choose another mode")
    }
  }
}
