// SPDX-License-Identifier: Apache-2.0

/// The encoding of a video frame's bytes: a codec or a pixel format.
public enum MediaSubType: Hashable, Sendable {
  /// A frame compressed by a codec.
  case codec(VideoCodec)
  /// Uncompressed pixels.
  case pixels(PixelFormat)
}

/// The type of a track or of a device's data.
public enum MediaType: String, Hashable, Sendable, CaseIterable, Codable {
  /// Video frames.
  case video
  /// Audio samples.
  case audio
}

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

/// An audio codec, by FFmpeg's name (libavcodec/codec_desc.c).
///
/// Any name is accepted here, even if FFmpeg does not know it. Each function that takes a codec
/// documents the names that it supports.
public struct AudioCodec: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
  /// FFmpeg's name: `aac`.
  public let rawValue: String
  /// The same as ``rawValue``.
  public var description: String { rawValue }
  /// True if samples are stored without compression (PCM), false if they are compressed.
  public var isUncompressed: Bool { rawValue.hasPrefix("pcm_") }

  /// Makes a codec from its FFmpeg name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// AAC.
  public static let aac = AudioCodec(rawValue: "aac")
  /// PCM: 16-bit signed little-endian samples.
  public static let pcm = AudioCodec(rawValue: "pcm_s16le")
}

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
