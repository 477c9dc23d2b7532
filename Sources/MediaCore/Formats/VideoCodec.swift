// SPDX-License-Identifier: Apache-2.0

/// A video codec, by FFmpeg's name (libavcodec/codec_desc.c).
///
/// Any name is accepted here, even if FFmpeg does not know it. Each function that takes a codec
/// documents the names that it supports.
public struct VideoCodec: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
  /// FFmpeg's name: `mjpeg`.
  public let rawValue: String
  /// The same as ``rawValue``.
  public var description: String { rawValue }

  /// Makes a codec from its FFmpeg name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Motion JPEG: each frame is one JPEG image.
  public static let mjpeg = VideoCodec(rawValue: "mjpeg")
  /// H.264, also called AVC.
  public static let h264 = VideoCodec(rawValue: "h264")
  /// HEVC, also called H.265.
  public static let hevc = VideoCodec(rawValue: "hevc")
  /// FFV1: lossless; every frame can be decoded alone.
  public static let ffv1 = VideoCodec(rawValue: "ffv1")
  /// Uncompressed frames.
  public static let rawVideo = VideoCodec(rawValue: "rawvideo")
}
