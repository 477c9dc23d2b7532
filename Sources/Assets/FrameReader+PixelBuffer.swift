// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
public import OvercrankMediaCore

extension FrameReader {
  /// Decodes the frame shown at a time.
  ///
  /// - Parameters:
  ///   - time: The time in the asset.
  ///   - format: The pixel format of the result.
  /// - Returns: The frame in its stored size, not rotated.
  /// - Throws: `MediaError` as ``index(at:)`` and ``copyFrame(at:into:)`` do.
  public mutating func pixelBuffer(
    at time: MediaTime, as format: PixelFormat = .bgra
  ) throws(MediaError) -> PixelBuffer {
    try pixelBuffer(ofFrame: index(at: time), as: format)
  }

  /// Decodes a frame by its index in presentation order, from 0.
  ///
  /// - Parameters:
  ///   - index: The index of the frame.
  ///   - format: The pixel format of the result.
  /// - Returns: The frame in its stored size, not rotated.
  /// - Throws: `MediaError` as ``copyFrame(at:into:)`` does.
  public mutating func pixelBuffer(
    ofFrame index: Int, as format: PixelFormat = .bgra
  ) throws(MediaError) -> PixelBuffer {
    var buffer = PixelBuffer(format: format)
    try copyFrame(at: index, into: &buffer)
    return buffer
  }

  /// Decodes a frame into an existing buffer, in the buffer's pixel format and the frame's stored
  /// size.
  ///
  /// The frame is not rotated. The result has video range in 4:2:0 formats, and full range in RGB
  /// and gray. If the buffer already has the frame's size, its memory is reused. The previous
  /// content of the buffer is lost even if decoding fails.
  ///
  /// - Parameters:
  ///   - index: The index in presentation order, from 0.
  ///   - buffer: The destination.
  /// - Throws: `MediaError` with `.outsideSource` for an index out of range, `.invalidData` for a
  ///   frame that cannot be decoded, `.notConvertible` for a format that libswscale does not
  ///   support.
  public mutating func copyFrame(
    at index: Int, into buffer: inout PixelBuffer
  ) throws(MediaError) {
    let frame = try mediaFrame(at: index)
    if converterFormat != buffer.format {
      converter = try FrameConverter(frames: buffer.format)
      converterFormat = buffer.format
    }
    do throws(LibAVError) { try converter?.convert(frame).copy(into: &buffer) } catch {
      throw MediaError(reading: error)
    }
  }
}

extension FrameConverter {
  /// Creates a converter for an asset's frames.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not support.
  init(frames format: PixelFormat, isFullRange: Bool = false) throws(MediaError) {
    do throws(LibAVError) { try self.init(to: format, yuvIsFullRange: isFullRange) } catch {
      throw MediaError(
        .notConvertible, "frames cannot be converted to \(format.rawValue)",
        recovery: "choose a format such as bgra, rgb24, gray, yuv420p or nv12")
    }
  }
}

extension MediaFrame {
  /// Converts a decoded frame to pixels, in its stored size.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not support.
  package func pixelBuffer(as format: PixelFormat) throws(MediaError) -> PixelBuffer {
    var buffer = PixelBuffer(format: format)
    var converter = try FrameConverter(frames: format)
    do throws(LibAVError) { try converter.convert(self).copy(into: &buffer) } catch {
      throw MediaError(reading: error)
    }
    return buffer
  }
}
