// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore

extension FrameReader {
  /// The image that is shown at a time.
  ///
  /// - Parameters:
  ///   - time: The time of the asset.
  ///   - format: How its pixels are to be stored.
  /// - Returns: The image, as large as it is stored, and not rotated.
  /// - Throws: `MediaError` as ``index(at:)`` and ``copyFrame(at:into:)``.
  public mutating func pixelBuffer(
    at time: MediaTime, as format: PixelFormat = .bgra
  ) throws(MediaError) -> PixelBuffer {
    try pixelBuffer(ofFrame: index(at: time), as: format)
  }

  /// The image of a frame by its number in order of presentation, from 0.
  ///
  /// - Parameters:
  ///   - index: The number.
  ///   - format: How its pixels are to be stored.
  /// - Returns: The image, as large as it is stored, and not rotated.
  /// - Throws: `MediaError` as ``copyFrame(at:into:)``.
  public mutating func pixelBuffer(
    ofFrame index: Int, as format: PixelFormat = .bgra
  ) throws(MediaError) -> PixelBuffer {
    var buffer = PixelBuffer(format: format)
    try copyFrame(at: index, into: &buffer)
    return buffer
  }

  /// Has a buffer hold a frame, in the buffer's pixel format and as large as the frame is stored.
  ///
  /// It is not rotated. Code values are those of the video range for 4:2:0 formats, and 0 to 255
  /// for RGB and gray (libswscale). It asks for no new memory for the pixels while frames are of one
  /// size: use one buffer for all. What it held before is gone, also where this fails.
  ///
  /// - Parameters:
  ///   - index: The number in order of presentation, from 0.
  ///   - buffer: The buffer.
  /// - Throws: `MediaError` with `.outsideSource` for a frame that is not there, `.invalidData` for
  ///   one that cannot be decoded, `.notConvertible` for a format that libswscale does not make.
  public mutating func copyFrame(
    at index: Int, into buffer: inout PixelBuffer
  ) throws(MediaError) {
    let frame = try picture(at: index)
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
  /// Prepares a conversion of an asset's frames.
  ///
  /// - Throws: `MediaError` with `.notConvertible` for a format that libswscale does not make.
  init(frames format: PixelFormat) throws(MediaError) {
    do throws(LibAVError) { try self.init(to: format) } catch {
      throw MediaError(
        .notConvertible, "frames cannot be had as \(format.rawValue)",
        recovery: "choose a format such as bgra, rgb24, gray, yuv420p or nv12")
    }
  }
}
