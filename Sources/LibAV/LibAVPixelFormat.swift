// SPDX-License-Identifier: Apache-2.0

package import CFFmpeg
package import OvercrankMediaCore

/// A pixel format as FFmpeg's enumeration.
package typealias LibAVPixelFormat = AVPixelFormat

extension AVPixelFormat {
  /// The format with an FFmpeg name such as `yuyv422`; nil for an unknown name.
  package init?(named name: String) {
    let format = av_get_pix_fmt(name)
    guard format != AV_PIX_FMT_NONE else { return nil }
    self = format
  }

  /// The FFmpeg format of a `PixelFormat`; nil if FFmpeg does not know its name.
  package init?(_ format: PixelFormat) { self.init(named: format.rawValue) }

  /// The FFmpeg format of a `PixelFormat`.
  ///
  /// - Throws: `CallFailure` with the operation "find" if FFmpeg does not know the name.
  package init(finding format: PixelFormat) throws(CallFailure) {
    guard let found = AVPixelFormat(format) else {
      throw CallFailure("find", "the pixel format \(format.rawValue)", code: CFFmpeg_EINVAL)
    }
    self = found
  }

  /// YUV 4:2:0 with video range in three planes.
  package static var yuv420p: AVPixelFormat { AV_PIX_FMT_YUV420P }
  /// YUV 4:2:0 with full range in three planes, as in JPEG.
  package static var yuvj420p: AVPixelFormat { AV_PIX_FMT_YUVJ420P }
  /// YUV 4:2:2 with full range in three planes, as in JPEG.
  package static var yuvj422p: AVPixelFormat { AV_PIX_FMT_YUVJ422P }
  /// YUV 4:2:0 with luma in one plane and interleaved chroma in another.
  package static var nv12: AVPixelFormat { AV_PIX_FMT_NV12 }
  /// YUV 4:2:2 with packed components in one plane.
  package static var yuyv422: AVPixelFormat { AV_PIX_FMT_YUYV422 }
  /// Blue, green, red and alpha in this order, with 8 bits for each component.
  package static var bgra: AVPixelFormat { AV_PIX_FMT_BGRA }
  /// Indices into a palette of 256 colors, one byte for each pixel.
  package static var pal8: AVPixelFormat { AV_PIX_FMT_PAL8 }
  /// 8-bit gray.
  package static var gray8: AVPixelFormat { AV_PIX_FMT_GRAY8 }
  /// Red, green and blue in this order, with one byte for each component.
  package static var rgb24: AVPixelFormat { AV_PIX_FMT_RGB24 }

  /// FFmpeg's name of the format.
  package var name: String { av_get_pix_fmt_name(self).map { String(cString: $0) } ?? "unknown" }

  /// Whether this is a format, and not the mark of an unknown one.
  package var isKnown: Bool { av_pix_fmt_desc_get(self) != nil }

  /// Whether the format itself implies full range.
  ///
  /// This is so for JPEG formats, gray and RGB.
  package var isFullRange: Bool {
    switch self {
    case AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUVJ440P,
      AV_PIX_FMT_YUVJ411P:
      true
    default: isRGB || isGray
    }
  }

  /// Whether libavformat reads uncompressed frames of the format in MOV as it wrote them.
  var hasTagInMOV: Bool {
    switch self {
    case AV_PIX_FMT_YUYV422, AV_PIX_FMT_UYVY422, AV_PIX_FMT_GRAY8, AV_PIX_FMT_GRAY16BE,
      AV_PIX_FMT_RGB24, AV_PIX_FMT_BGR24, AV_PIX_FMT_RGBA, AV_PIX_FMT_BGRA, AV_PIX_FMT_ARGB,
      AV_PIX_FMT_ABGR, AV_PIX_FMT_RGB48BE, AV_PIX_FMT_RGB565LE, AV_PIX_FMT_RGB555LE:
      true
    default: false
    }
  }

  /// Whether libswscale can read the format, see `sws_isSupportedInput`.
  package var isConvertible: Bool { sws_isSupportedInput(self) != 0 }

  /// Whether libswscale can write the format, see `sws_isSupportedOutput`.
  package var isConversionTarget: Bool { sws_isSupportedOutput(self) != 0 }

  /// Whether the format stores red, green and blue.
  package var isRGB: Bool { flags & UInt64(AV_PIX_FMT_FLAG_RGB) != 0 }
  /// Whether the format stores luma only.
  package var isGray: Bool {
    guard let description = av_pix_fmt_desc_get(self) else { return false }
    return description.pointee.nb_components == 1 && !isBayer
  }
  /// Whether the format has an alpha channel.
  ///
  /// False for a palette, even if its colors have alpha.
  package var hasAlpha: Bool {
    flags & UInt64(AV_PIX_FMT_FLAG_ALPHA) != 0 && flags & UInt64(AV_PIX_FMT_FLAG_PAL) == 0
  }
  /// Whether the format is a Bayer mosaic.
  package var isBayer: Bool { flags & UInt64(AV_PIX_FMT_FLAG_BAYER) != 0 }

  /// Whether chroma has the full vertical resolution, as in 4:2:2, 4:4:4 and RGB.
  package var isWideChroma: Bool {
    guard let description = av_pix_fmt_desc_get(self) else { return false }
    return description.pointee.nb_components >= 3 && description.pointee.log2_chroma_h == 0
  }

  /// The horizontal and vertical chroma subsampling, as exponents of two: 1 halves the columns or
  /// rows.
  package var chromaShift: (x: Int, y: Int) {
    guard let description = av_pix_fmt_desc_get(self) else { return (0, 0) }
    return (Int(description.pointee.log2_chroma_w), Int(description.pointee.log2_chroma_h))
  }

  private var flags: UInt64 { av_pix_fmt_desc_get(self)?.pointee.flags ?? 0 }
}
