// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

/// A V4L2 pixel format with its FFmpeg counterpart.
///
/// A counterpart exists only if the bytes are the same, except for padding at line ends. Without a
/// counterpart, a movie cannot store the frames.
package struct FourCCFormat: Hashable, Sendable {
  /// The V4L2 code of the format.
  package let fourcc: FourCC
  /// The FFmpeg pixel format or codec.
  package let mediaSubType: MediaSubType
  /// The number of bits per pixel in memory, including unused bits.
  ///
  /// 0 for compressed formats.
  package let bitsPerPixel: Int
  /// The color model of the format.
  package let colorModel: ColorModel
  /// The number of memory planes of a frame.
  ///
  /// The number is above 1 only if each image plane has a separate memory plane.
  package let separatePlaneCount: Int

  /// Finds the counterpart of a format, or returns nil if FFmpeg has none.
  package init?(_ fourcc: FourCC) {
    guard let format = Self.byFourCC[fourcc] else { return nil }
    self = format
  }

  init(
    _ fourcc: FourCC, _ mediaSubType: MediaSubType, _ bitsPerPixel: Int, _ colorModel: ColorModel
  ) {
    (self.fourcc, self.mediaSubType, self.bitsPerPixel) = (fourcc, mediaSubType, bitsPerPixel)
    self.colorModel = colorModel
    separatePlaneCount = fourcc.separatePlaneCount
  }

  private static let byFourCC = Dictionary(
    table.map { ($0.fourcc, $0) }, uniquingKeysWith: { first, _ in first })

  /// All V4L2 formats with an identical FFmpeg 5.1 format.
  ///
  /// The first name is from linux/videodev2.h, the second from libavutil/pixfmt.h. Both name a
  /// format after its components, but V4L2 often lists the components in the reverse of their order
  /// in memory. For example, V4L2's ABGR32 (`AR24`) is B, G, R, A in memory, which FFmpeg calls
  /// bgra.
  ///
  /// These formats are left out:
  ///
  /// - `YV12`, `YVU9`, `NV61`, `NM61`, `YM21`, `YM61`, `YM42` and `VYUY`, because FFmpeg has no
  ///   name for their swapped chroma.
  /// - `Y04`, `Y06`, and the packed `Y10B` and `Y10P`.
  /// - Bayer formats of 10 to 14 bits. FFmpeg has only 8 and 16 bits. Read as 16 bits, their values
  ///   would be 4 to 64 times too dark.
  /// - HSV formats.
  static let table: [FourCCFormat] =
    rows(
      .compressed, 0, of: { .codec(VideoCodec(rawValue: $0)) },
      [
        ("MJPG", "mjpeg"), ("JPEG", "mjpeg"), ("H264", "h264"),
      ])
    + rows(
      .color, 9,
      [
        ("YUV9", "yuv410p")
      ])
    + rows(
      .color, 12,
      [
        ("YU12", "yuv420p"), ("NV12", "nv12"), ("NV21", "nv21"), ("411P", "yuv411p"),
        // Multi-planar YU12, NV12 and NV21: each image plane has a separate memory plane.
        ("YM12", "yuv420p"), ("NM12", "nv12"), ("NM21", "nv21"),
      ])
    + rows(
      .color, 16,
      [
        ("YUYV", "yuyv422"), ("UYVY", "uyvy422"), ("YVYU", "yvyu422"),
        ("422P", "yuv422p"), ("NV16", "nv16"), ("YM16", "yuv422p"), ("NM16", "nv16"),
        // 15-bit and 16-bit RGB. FFmpeg ignores the top bit of 15-bit formats, whether alpha (A…)
        // or unused (X…).
        ("RGBP", "rgb565le"), ("RGBR", "rgb565be"),
        ("RGBO", "rgb555le"), ("AR15", "rgb555le"), ("XR15", "rgb555le"),
        ("RGBQ", "rgb555be"), ("AR15-BE", "rgb555be"), ("XR15-BE", "rgb555be"),
        ("AB15", "bgr555le"), ("XB15", "bgr555le"),
        // 12-bit RGB. FFmpeg ignores the top four bits.
        ("R444", "rgb444le"), ("AR12", "rgb444le"), ("XR12", "rgb444le"),
        ("AB12", "bgr444le"), ("XB12", "bgr444le"),
      ])
    + rows(.color, 8, [("RGB1", "rgb8")])
    + rows(
      .color, 24,
      [
        ("RGB3", "rgb24"), ("BGR3", "bgr24"), ("NV24", "nv24"), ("NV42", "nv42"),
        ("YM24", "yuv444p"),
        ("P010", "p010le"),
      ])
    + rows(
      .color, 32,
      [
        // V4L2 does not define whether the fourth byte of these legacy formats is alpha, so it is
        // ignored.
        ("BGR4", "bgr0"), ("RGB4", "0rgb"),
        ("AR24", "bgra"), ("XR24", "bgr0"), ("RA24", "abgr"), ("RX24", "0bgr"),
        ("AB24", "rgba"), ("XB24", "rgb0"), ("BA24", "argb"), ("BX24", "0rgb"),
      ])
    + rows(.gray, 8, [("GREY", "gray")])
    + rows(
      .gray, 16,
      [
        ("Y10", "gray10le"), ("Y12", "gray12le"), ("Y14", "gray14le"),
        ("Y16", "gray16le"), ("Y16-BE", "gray16be"),
      ])
    + rows(
      .bayer, 8,
      [
        ("BA81", "bayer_bggr8"), ("GBRG", "bayer_gbrg8"),
        ("GRBG", "bayer_grbg8"), ("RGGB", "bayer_rggb8"),
      ])
    + rows(
      .bayer, 16,
      [
        ("BYR2", "bayer_bggr16le"), ("GB16", "bayer_gbrg16le"),
        ("GR16", "bayer_grbg16le"), ("RG16", "bayer_rggb16le"),
      ])

  private static func rows(
    _ colorModel: ColorModel, _ bits: Int,
    of subType: (String) -> MediaSubType = { .pixels(PixelFormat(rawValue: $0)) },
    _ names: [(String, String)]
  ) -> [FourCCFormat] {
    names.compactMap { name, ffmpeg in
      FourCC(name).map { FourCCFormat($0, subType(ffmpeg), bits, colorModel) }
    }
  }
}

extension FourCC {
  /// The number of memory planes of a frame.
  ///
  /// Formats of linux/videodev2.h whose macro names end in M have a separate memory plane for each
  /// image plane. All other formats have one memory plane.
  var separatePlaneCount: Int {
    switch description {
    case "NM12", "NM21", "NM16", "NM61", "VM12", "MM21": 2
    case "YM12", "YM21", "YM16", "YM61", "YM24", "YM42": 3
    default: 1
    }
  }
}
