// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg
package import OvercrankMediaCore

/// Converts pictures to one size and pixel format with libswscale.
package struct Scaler: ~Copyable {
  private let context: OpaquePointer
  private let width: Int
  private let height: Int
  private let pixelFormat: AVPixelFormat

  /// Sets up a conversion.
  ///
  /// `isFullRange` says whether a side uses all code values (JPEG) or the video range. What
  /// libswscale cannot convert is an error for "convert". `colorSpace` is the matrix of either
  /// side that is not RGB.
  package init(
    from source: (width: Int, height: Int, pixelFormat: AVPixelFormat, isFullRange: Bool),
    to target: (width: Int, height: Int, pixelFormat: AVPixelFormat, isFullRange: Bool),
    colorSpace: AVColorSpace = AVCOL_SPC_UNSPECIFIED
  ) throws(LibAVError) {
    // The fast way to RGB is up to two levels too dark.
    let exactness = SWS_ACCURATE_RND | (target.pixelFormat.isRGB ? SWS_FULL_CHR_H_INT : 0)
    guard
      let context = LibAVLog.during({
        sws_getContext(
          Int32(clamping: source.width), Int32(clamping: source.height), source.pixelFormat,
          Int32(clamping: target.width), Int32(clamping: target.height), target.pixelFormat,
          SWS_BICUBIC | exactness, nil, nil, nil)
      })
    else {
      throw LibAVError(
        "convert", "pictures to another pixel format", code: CFFmpeg_EINVAL,
        logLine: LibAVLog.takeLine())
    }
    // The same on both sides, BT.601 where nothing is said: the range may change here, the
    // matrix never does. libswscale's numbers are those of AVColorSpace.
    let matrix = sws_getCoefficients(
      colorSpace == AVCOL_SPC_UNSPECIFIED || colorSpace == AVCOL_SPC_RGB
        ? SWS_CS_DEFAULT : Int32(clamping: colorSpace.rawValue))
    // A negative answer means that neither side has a range (RGB to RGB): nothing to set.
    _ = sws_setColorspaceDetails(
      context, matrix, source.isFullRange ? 1 : 0, matrix, target.isFullRange ? 1 : 0, 0, 1 << 16,
      1 << 16)
    self.context = context
    width = target.width
    height = target.height
    pixelFormat = target.pixelFormat
  }

  deinit { sws_freeContext(context) }

  /// The converted picture, in memory of its own.
  ///
  /// - Throws: `LibAVError` for "convert".
  package mutating func convert(_ frame: MediaFrame) throws(LibAVError) -> MediaFrame {
    let result = try MediaFrame.picture(width: width, height: height, pixelFormat: pixelFormat)
    try LibAVError.check(
      sws_scale_frame(context, result.pointer, frame.pointer), "convert", "a picture")
    return result
  }
}

/// Converts pictures to one pixel format, setting up anew when their size or format changes.
package struct FrameConverter: ~Copyable {
  private struct Source: Equatable {
    let width: Int
    let height: Int
    let format: Int32
    let isFullRange: Bool
    let colorSpace: AVColorSpace
  }

  private let target: LibAVPixelFormat
  private let isFullRange: Bool
  private let size: (width: Int, height: Int)?
  private var scaler: Scaler?
  private var source: Source?

  /// Prepares a conversion; `isFullRange` says what range the result's code values take.
  ///
  /// Pictures keep their size unless one is given.
  package init(
    to target: LibAVPixelFormat, isFullRange: Bool, width: Int? = nil, height: Int? = nil
  ) {
    self.target = target
    self.isFullRange = isFullRange
    if let width, let height { size = (width, height) } else { size = nil }
  }

  /// Prepares a conversion to the range that a format usually has: RGB and gray the full one.
  ///
  /// - Throws: `LibAVError` for "find" where libswscale does not make the format.
  package init(to format: PixelFormat) throws(LibAVError) {
    let target = try LibAVPixelFormat(finding: format)
    guard target.isConversionTarget else {
      throw LibAVError("find", "the pixel format \(format.rawValue)", code: CFFmpeg_EINVAL)
    }
    self.init(to: target, isFullRange: target.isFullRange)
  }

  /// The picture in the target format and size; the frame itself where it has both.
  ///
  /// - Throws: `LibAVError` for "convert".
  package mutating func convert(_ frame: MediaFrame) throws(LibAVError) -> MediaFrame {
    let next = Source(
      width: frame.width, height: frame.height, format: frame.pointer.pointee.format,
      isFullRange: frame.isFullRange, colorSpace: frame.colorSpace)
    let (width, height) = size ?? (frame.width, frame.height)
    if next.format == target.rawValue, next.isFullRange == isFullRange, width == frame.width,
      height == frame.height
    {
      return frame
    }
    if next != source {
      scaler = try Scaler(
        from: (frame.width, frame.height, frame.pixelFormat, next.isFullRange),
        to: (width, height, target, isFullRange), colorSpace: frame.colorSpace)
      source = next
    }
    guard let converted = try scaler?.convert(frame) else {
      throw LibAVError("convert", "a picture", code: CFFmpeg_EINVAL)
    }
    return converted
  }
}
