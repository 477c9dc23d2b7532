// SPDX-License-Identifier: Apache-2.0

/// The memory layout of an image's pixels, by FFmpeg's name (libavutil/pixfmt.h).
///
/// Any name is accepted here, even if FFmpeg does not know it. Each function that takes a format
/// documents the names that it supports.
public struct PixelFormat: RawRepresentable, Hashable, Sendable, Codable {
  /// FFmpeg's name: `yuyv422`.
  public let rawValue: String

  /// Makes a format from its FFmpeg name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Blue, green, red and alpha in that order, one byte each, full range (0 to 255).
  public static let bgra = PixelFormat(rawValue: "bgra")
  /// Red, green and blue in that order, one byte each, full range (0 to 255).
  public static let rgb24 = PixelFormat(rawValue: "rgb24")
  /// YUV 4:2:0: a luma plane, then one plane of interleaved U and V.
  ///
  /// Usually video range, 16 to 235.
  public static let nv12 = PixelFormat(rawValue: "nv12")
  /// YUV 4:2:0: a luma plane, then a U and a V plane.
  ///
  /// Usually video range, 16 to 235.
  ///
  /// Also called I420.
  public static let yuv420p = PixelFormat(rawValue: "yuv420p")
  /// Luma only, one byte per pixel, from 0 (black) to 255 (white).
  public static let gray = PixelFormat(rawValue: "gray")
  /// YUV 4:2:2 packed as Y, U, Y, V, one byte each.
  public static let yuyv422 = PixelFormat(rawValue: "yuyv422")
}
