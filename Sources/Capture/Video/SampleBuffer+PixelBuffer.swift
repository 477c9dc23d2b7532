// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

extension SampleBuffer {
  /// The frame in another pixel format, of the same size; decoded where it is compressed.
  ///
  /// Any thread may call it; several at a time do not wait for one another. Code values are those of
  /// the video range for 4:2:0 formats, and 0 to 255 for RGB and gray (libswscale, BT.601 where the
  /// camera does not say). H.264 cannot be converted frame by frame.
  ///
  /// - Throws: `MediaError` with `.notConvertible` where the frame is damaged or of a codec whose
  ///   frames need each other, and for a format that libswscale does not make.
  public func pixelBuffer(as format: PixelFormat) throws(MediaError) -> PixelBuffer {
    var buffer = PixelBuffer(format: format)
    try convert(into: &buffer)
    return buffer
  }

  /// Has a buffer hold the frame, in the buffer's pixel format.
  ///
  /// It asks for no new memory for the pixels while frames are of one size: use one buffer for all.
  /// What it held before is gone, also where this fails.
  ///
  /// - Throws: `MediaError` as ``pixelBuffer(as:)``.
  public func convert(into buffer: inout PixelBuffer) throws(MediaError) {
    try converted(to: buffer.format) { frame throws(LibAVError) in try frame.copy(into: &buffer) }
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
        try body(converters.convert(bytes, formatDescription, to: format))
      }
    } catch {
      throw MediaError(
        .notConvertible, "a captured frame cannot be had as \(format.rawValue): \(error)",
        recovery: "take the bytes as they are, or choose another mode")
    }
  }
}
