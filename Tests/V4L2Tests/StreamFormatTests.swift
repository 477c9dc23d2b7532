// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
import Testing

@testable import OvercrankV4L2

/// The pixel formats that drivers report.
struct StreamFormatTests {
  @Test(
    "The matrix is the stated one or that of the color space",
    arguments: [
      (V4L2_COLORSPACE_SRGB, V4L2_YCBCR_ENC_DEFAULT, .bt601),
      (V4L2_COLORSPACE_DEFAULT, V4L2_YCBCR_ENC_DEFAULT, .bt601),
      (V4L2_COLORSPACE_REC709, V4L2_YCBCR_ENC_DEFAULT, .bt709),
      (V4L2_COLORSPACE_BT2020, V4L2_YCBCR_ENC_DEFAULT, .other),
      (V4L2_COLORSPACE_SRGB, V4L2_YCBCR_ENC_709, .bt709),
      (V4L2_COLORSPACE_REC709, V4L2_YCBCR_ENC_601, .bt601),
      (V4L2_COLORSPACE_REC709, V4L2_YCBCR_ENC_BT2020, .other),
    ] as [(v4l2_colorspace, v4l2_ycbcr_encoding, StreamFormat.Encoding)])
  func encoding(
    colorSpace: v4l2_colorspace, stated: v4l2_ycbcr_encoding, expected: StreamFormat.Encoding
  ) {
    var pixels = v4l2_pix_format()
    pixels.colorspace = colorSpace.rawValue
    pixels.ycbcr_enc = stated.rawValue
    #expect(StreamFormat(pixels).encoding == expected)
    var planes = v4l2_pix_format_mplane()
    planes.colorspace = colorSpace.rawValue
    planes.ycbcr_enc = UInt8(stated.rawValue)
    #expect(StreamFormat(planes).encoding == expected)
  }
}
