// SPDX-License-Identifier: Apache-2.0

/// How the pixels of an image lie in memory, by FFmpeg's name (libavutil/pixfmt.h).
///
/// Any name stands, whether or not FFmpeg knows it; what uses a format tells which it takes.
public struct PixelFormat: RawRepresentable, Hashable, Sendable {
  /// FFmpeg's name: `yuyv422`.
  public let rawValue: String

  /// Makes a format from FFmpeg's name of it.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Blue, green, red and alpha, a byte each, from 0 to 255.
  public static let bgra = PixelFormat(rawValue: "bgra")
  /// Red, green and blue, a byte each, from 0 to 255.
  public static let rgb24 = PixelFormat(rawValue: "rgb24")
  /// Luma, then the chroma of 2x2 pixels in pairs; usually in the video range, 16 to 235.
  public static let nv12 = PixelFormat(rawValue: "nv12")
  /// Luma, then two planes of chroma of 2x2 pixels; usually in the video range, 16 to 235.
  ///
  /// Others call it I420.
  public static let yuv420p = PixelFormat(rawValue: "yuv420p")
  /// Luma alone, a byte a pixel, from 0 for black to 255 for white.
  public static let gray = PixelFormat(rawValue: "gray")
  /// Luma and chroma of 2x1 pixels by turns, a byte each.
  public static let yuyv422 = PixelFormat(rawValue: "yuyv422")
}
