// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

extension SampleBuffer {
  /// Converts the frame to another pixel format of the same size.
  ///
  /// A compressed frame is decoded.
  ///
  /// Any thread may call this method, and calls run concurrently. Luma and chroma of 4:2:0 formats
  /// use video range. RGB and gray use 0 to 255. The conversion uses libswscale, with BT.601 if the
  /// camera reports no color space. H.264 frames cannot be converted, because decoding one needs
  /// the previous frames.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a damaged frame, a codec with inter-frame
  ///   prediction, or a format that libswscale does not support.
  public func pixelBuffer(as format: PixelFormat) throws(MediaError) -> PixelBuffer {
    var buffer = PixelBuffer(format: format)
    try convert(into: &buffer)
    return buffer
  }

  /// Converts the frame into an existing buffer, in the buffer's pixel format.
  ///
  /// If consecutive frames have the same size, the buffer's memory is reused. The previous content
  /// is lost even if the conversion fails.
  ///
  /// - Throws: `MediaError` as ``pixelBuffer(as:)`` does.
  public func convert(into buffer: inout PixelBuffer) throws(MediaError) {
    if let image, image.format == buffer.format {
      buffer = image
      buffer.attachments = attachments.properties
      return
    }
    buffer.attachments = attachments.properties
    try converted(to: buffer.format) { frame throws(CallFailure) in try frame.copy(into: &buffer) }
  }

  /// Encodes the frame as a PNG file in RGB with 8 bits per channel.
  ///
  /// - Throws: `MediaError` as ``pixelBuffer(as:)`` does.
  public func pngData() throws(MediaError) -> [UInt8] {
    try converted(to: .rgb24) { frame throws(CallFailure) in try frame.pngBytes() }
  }

  private func converted<Result>(
    to format: PixelFormat, _ body: (borrowing MediaFrame) throws(CallFailure) -> Result
  ) throws(MediaError) -> Result {
    do throws(CallFailure) {
      return try withBytes { bytes throws(CallFailure) in
        try body(converters.convert(bytes, formatDescription, to: format))
      }
    } catch {
      throw MediaError(
        .notConvertible, "could not convert a captured frame to \(format.rawValue): \(error)",
        recovery: "use the original bytes, or choose another mode")
    }
  }
}
