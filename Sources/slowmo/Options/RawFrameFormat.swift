// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// The pixel format of raw frames, which are written without a file format.
enum RawFrameFormat: String, CaseIterable, ExpressibleByArgument {
  /// 8-bit luma from 0 (black) to 255 (white).
  case gray8
  /// 16-bit luma from 0 to 65535, in little-endian byte order.
  case gray16le
  /// Red, green and blue, one byte each.
  case rgb24
  /// YUV 4:2:0 in three planes; `--raw-range` sets its range.
  case yuv420p

  var pixelFormat: PixelFormat { self == .gray8 ? .gray : PixelFormat(rawValue: rawValue) }
}

/// The range of raw YUV frames, as values of `--raw-range`.
enum RawFrameRange: String, CaseIterable, ExpressibleByArgument {
  /// Luma from 16 to 235, as most programs expect.
  case limited
  /// Luma from 0 to 255, without converting full-range movies such as Motion JPEG.
  case full
}
