// SPDX-License-Identifier: Apache-2.0
package import CFFmpeg

/// Converts pictures to one size and pixel format with libswscale.
package struct Scaler: ~Copyable {
  private let context: OpaquePointer
  private let width: Int
  private let height: Int
  private let pixelFormat: AVPixelFormat

  /// Sets up a conversion.
  ///
  /// `isFullRange` says whether a side uses all code values (JPEG) or the video range. What
  /// libswscale cannot convert is an error for "convert".
  package init(
    from source: (width: Int, height: Int, pixelFormat: AVPixelFormat, isFullRange: Bool),
    to target: (width: Int, height: Int, pixelFormat: AVPixelFormat, isFullRange: Bool)
  ) throws(LibAVError) {
    _ = LibAVLog.install
    guard
      let context = sws_getContext(
        Int32(clamping: source.width), Int32(clamping: source.height), source.pixelFormat,
        Int32(clamping: target.width), Int32(clamping: target.height), target.pixelFormat,
        SWS_BICUBIC | SWS_ACCURATE_RND, nil, nil, nil)
    else {
      throw LibAVError("convert", "pictures to another pixel format", code: CFFmpeg_EINVAL)
    }
    // BT.601 on both sides: the range may change here, the matrix never does.
    let matrix = sws_getCoefficients(SWS_CS_DEFAULT)
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
