// SPDX-License-Identifier: Apache-2.0

import CFFmpeg
import OvercrankMediaCore

/// Converts 8-bit YUV planes from full range to video range.
///
/// The levels of the result equal those of libswscale for JPEG formats. libswscale is not used,
/// because its conversion takes as long as decoding Motion JPEG, and because it does not convert
/// the range of other formats.
enum VideoRangeConversion {
  /// Whether a frame can be converted to a format in video range by changing only its levels.
  static func applies(to frame: MediaFrame, target: LibAVPixelFormat) -> Bool {
    guard frame.isFullRange else { return false }
    return switch target {
    case AV_PIX_FMT_YUV420P: [target, AV_PIX_FMT_YUVJ420P].contains(frame.pixelFormat)
    case AV_PIX_FMT_YUV422P: [target, AV_PIX_FMT_YUVJ422P].contains(frame.pixelFormat)
    case AV_PIX_FMT_YUV444P: [target, AV_PIX_FMT_YUVJ444P].contains(frame.pixelFormat)
    default: false
    }
  }

  /// Returns the frame in video range.
  ///
  /// - Precondition: ``applies(to:target:)`` is true.
  /// - Throws: `CallFailure` with the operation "convert" or "allocate".
  static func convert(
    _ frame: MediaFrame, to target: LibAVPixelFormat
  ) throws(CallFailure) -> MediaFrame {
    let result = try MediaFrame.video(
      width: frame.width, height: frame.height, pixelFormat: target)
    let chroma = (
      width: target == AV_PIX_FMT_YUV444P ? frame.width : (frame.width + 1) / 2,
      height: target == AV_PIX_FMT_YUV420P ? (frame.height + 1) / 2 : frame.height
    )
    for plane in 0..<3 {
      guard let source = frame.planeData(plane), let goal = result.planeData(plane) else {
        throw CallFailure("convert", "a picture", code: CFFmpeg_EINVAL)
      }
      let (width, height) = plane == 0 ? (frame.width, frame.height) : chroma
      for row in 0..<height {
        convert(
          UnsafeBufferPointer(start: source + row * frame.bytesPerRow(plane), count: width),
          into: UnsafeMutableBufferPointer(
            start: goal + row * result.bytesPerRow(plane), count: width),
          plane == 0 ? luma : chromaLevels)
      }
    }
    return result
  }

  /// A linear function of levels.
  ///
  /// The result is the upper byte of (level · 256 · factor / 65536 + offset), which processors
  /// compute for many levels at once.
  private struct Levels {
    let factor: UInt32
    let offset: UInt16
  }

  /// Maps luma levels from 0…255 to 16…235.
  private static let luma = Levels(factor: 56_281, offset: 4_225)
  /// Maps chroma levels from 0…255 to 16…240.
  private static let chromaLevels = Levels(factor: 57_562, offset: 4_117)

  private static func convert(
    _ source: UnsafeBufferPointer<UInt8>, into target: UnsafeMutableBufferPointer<UInt8>,
    _ levels: Levels
  ) {
    for index in 0..<min(source.count, target.count) {
      let level = UInt32(source[index]) &<< 8
      let scaled = UInt16(truncatingIfNeeded: (level &* levels.factor) &>> 16)
      target[index] = UInt8(truncatingIfNeeded: (scaled &+ levels.offset) &>> 8)
    }
  }
}
