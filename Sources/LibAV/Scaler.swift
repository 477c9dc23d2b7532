// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg
package import OvercrankMediaCore

/// The accuracy of libswscale's color conversion.
package enum ConversionQuality: Sendable {
  /// Rounds to the nearest level, and interpolates chroma.
  ///
  /// For all frames that are stored or measured.
  case exact
  /// Converts about ten times as fast, for frames that are only displayed.
  ///
  /// In RGB, levels are wrong by up to 3, neighboring pixels have the same chroma, and the filters
  /// for scaling are shorter. All other formats are exact.
  case fast
  /// Scales with a Lanczos filter, which keeps more detail than the bicubic filter but rings at
  /// edges.
  ///
  /// Not for RGB.
  case lanczos

  /// The libswscale flags for a conversion to a format.
  ///
  /// Without accurate rounding, libswscale's conversion to RGB is up to two levels too dark.
  fileprivate func flags(to target: LibAVPixelFormat) -> Int32 {
    switch self {
    case .exact where target.isRGB: SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT
    case .fast where target.isRGB: SWS_BILINEAR
    case .exact, .fast: SWS_BICUBIC | SWS_ACCURATE_RND
    case .lanczos: SWS_LANCZOS | SWS_ACCURATE_RND
    }
  }
}

/// Converts frames to one size and pixel format with libswscale.
package struct Scaler: ~Copyable {
  private let context: OpaquePointer
  private let width: Int
  private let height: Int
  private let pixelFormat: AVPixelFormat

  /// Creates a conversion of frames from one size and pixel format to another.
  ///
  /// `isFullRange` selects full range (JPEG) or video range, separately for source and target.
  /// `colorSpace` is the YUV matrix of both. For an unsupported conversion, an error with the
  /// operation "convert" is thrown.
  package init(
    from source: (width: Int, height: Int, pixelFormat: AVPixelFormat, isFullRange: Bool),
    to target: (width: Int, height: Int, pixelFormat: AVPixelFormat, isFullRange: Bool),
    colorSpace: AVColorSpace = AVCOL_SPC_UNSPECIFIED, quality: ConversionQuality = .exact
  ) throws(CallFailure) {
    guard
      let context = LibAVLog.during({
        sws_getContext(
          Int32(clamping: source.width), Int32(clamping: source.height), source.pixelFormat,
          Int32(clamping: target.width), Int32(clamping: target.height), target.pixelFormat,
          quality.flags(to: target.pixelFormat), nil, nil, nil)
      })
    else {
      throw CallFailure(
        "convert", "frames to another pixel format", code: CFFmpeg_EINVAL,
        logLine: LibAVLog.takeLine())
    }
    // The conversion may change the range but not the YUV matrix, so source and target use the same
    // matrix. For an untagged frame, this is BT.601. libswscale's `SWS_CS_` constants and
    // `AVColorSpace` use the same numbers for the matrices.
    let matrix = sws_getCoefficients(
      colorSpace == AVCOL_SPC_UNSPECIFIED || colorSpace == AVCOL_SPC_RGB
        ? SWS_CS_DEFAULT : Int32(clamping: colorSpace.rawValue))
    // A negative result means that neither source nor target has a range (RGB to RGB). Nothing
    // needs to be set then.
    _ = sws_setColorspaceDetails(
      context, matrix, source.isFullRange ? 1 : 0, matrix, target.isFullRange ? 1 : 0, 0, 1 << 16,
      1 << 16)
    self.context = context
    width = target.width
    height = target.height
    pixelFormat = target.pixelFormat
  }

  deinit { sws_freeContext(context) }

  /// Returns the converted frame as a new frame.
  ///
  /// - Throws: `CallFailure` with the operation "convert".
  package mutating func convert(_ frame: MediaFrame) throws(CallFailure) -> MediaFrame {
    let result = try MediaFrame.video(width: width, height: height, pixelFormat: pixelFormat)
    try CallFailure.check(
      sws_scale_frame(context, result.pointer, frame.pointer), "convert", "a picture")
    return result
  }
}

/// Converts frames to one pixel format.
///
/// If the size or the format of the source frames changes, a new conversion is set up.
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
  private let quality: ConversionQuality
  private let size: (width: Int, height: Int)?
  private var unpacker: Scaler?
  private var scaler: Scaler?
  private var source: Source?

  /// Creates a converter.
  ///
  /// `isFullRange` selects the range of the result.
  ///
  /// If no target size is given, frames keep their size.
  package init(
    to target: LibAVPixelFormat, isFullRange: Bool, width: Int? = nil, height: Int? = nil,
    quality: ConversionQuality = .exact
  ) {
    self.target = target
    self.isFullRange = isFullRange
    self.quality = quality
    if let width, let height { size = (width, height) } else { size = nil }
  }

  /// Creates a converter to a format, with full range for RGB and gray, and the given range for
  /// YUV.
  ///
  /// - Throws: `CallFailure` with the operation "find" if libswscale cannot write the format.
  package init(to format: PixelFormat, yuvIsFullRange: Bool = false) throws(CallFailure) {
    let target = try LibAVPixelFormat(finding: format)
    guard target.isConversionTarget else {
      throw CallFailure("find", "the pixel format \(format.rawValue)", code: CFFmpeg_EINVAL)
    }
    self.init(to: target, isFullRange: yuvIsFullRange || target.isFullRange)
  }

  /// Returns the frame in the target format and size.
  ///
  /// If the frame already has this format and size, returns the frame itself.
  ///
  /// - Throws: `CallFailure` with the operation "convert".
  package mutating func convert(_ frame: MediaFrame) throws(CallFailure) -> MediaFrame {
    let next = Source(
      width: frame.width, height: frame.height, format: frame.pointer.pointee.format,
      isFullRange: frame.isFullRange, colorSpace: frame.colorSpace)
    let (width, height) = size ?? (frame.width, frame.height)
    if next.format == target.rawValue, next.isFullRange == isFullRange, width == frame.width,
      height == frame.height
    {
      return frame
    }
    if !isFullRange, (width, height) == (frame.width, frame.height),
      VideoRangeConversion.applies(to: frame, target: target)
    {
      return try VideoRangeConversion.convert(frame, to: target)
    }
    if next != source {
      // For packed YUV, two conversions are faster than one: libswscale is fast from packed YUV to
      // planes, and from planes to RGB.
      let isUnpacked =
        quality == .fast && target.isRGB && frame.pixelFormat == .yuyv422
        && (width, height) == (frame.width, frame.height)
      let format = isUnpacked ? AV_PIX_FMT_YUV422P : frame.pixelFormat
      let planes = (frame.width, frame.height, format, next.isFullRange)
      unpacker =
        isUnpacked
        ? try Scaler(
          from: (frame.width, frame.height, frame.pixelFormat, next.isFullRange), to: planes,
          colorSpace: frame.colorSpace, quality: quality) : nil
      scaler = try Scaler(
        from: planes, to: (width, height, target, isFullRange), colorSpace: frame.colorSpace,
        quality: quality)
      source = next
    }
    let planes = try unpacker?.convert(frame) ?? frame
    guard let converted = try scaler?.convert(planes) else {
      throw CallFailure("convert", "a picture", code: CFFmpeg_EINVAL)
    }
    return converted
  }
}
