// SPDX-License-Identifier: Apache-2.0

/// A video codec, by FFmpeg's name (libavcodec/codec_desc.c).
///
/// Any name stands, whether or not FFmpeg knows it; what uses a codec tells which it takes.
public struct VideoCodec: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
  /// FFmpeg's name: `mjpeg`.
  public let rawValue: String
  /// FFmpeg's name.
  public var description: String { rawValue }

  /// Makes a codec from FFmpeg's name of it.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// A JPEG image for each frame.
  public static let mjpeg = VideoCodec(rawValue: "mjpeg")
  /// H.264, also called AVC.
  public static let h264 = VideoCodec(rawValue: "h264")
  /// HEVC, also called H.265.
  public static let hevc = VideoCodec(rawValue: "hevc")
  /// FFV1: lossless, each frame by itself.
  public static let ffv1 = VideoCodec(rawValue: "ffv1")
  /// Uncompressed.
  public static let rawVideo = VideoCodec(rawValue: "rawvideo")
}
