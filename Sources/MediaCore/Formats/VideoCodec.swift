// SPDX-License-Identifier: Apache-2.0

/// A video codec, by FFmpeg's name (libavcodec/codec_desc.c).
public struct VideoCodec: RawRepresentable, Hashable, Sendable {
  /// FFmpeg's name: `mjpeg`.
  public let rawValue: String

  /// Makes a codec from FFmpeg's name of it.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// A JPEG image for each frame.
  public static let mjpeg = VideoCodec(rawValue: "mjpeg")
  /// H.264, also called AVC.
  public static let h264 = VideoCodec(rawValue: "h264")
}
