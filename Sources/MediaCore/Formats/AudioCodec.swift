// SPDX-License-Identifier: Apache-2.0

/// An audio codec, by FFmpeg's name (libavcodec/codec_desc.c).
///
/// Any name stands, whether or not FFmpeg knows it; what uses a codec tells which it takes.
public struct AudioCodec: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
  /// FFmpeg's name: `aac`.
  public let rawValue: String
  /// FFmpeg's name.
  public var description: String { rawValue }
  /// Whether samples are stored as they are.
  public var isUncompressed: Bool { rawValue.hasPrefix("pcm_") }

  /// Makes a codec from FFmpeg's name of it.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// AAC.
  public static let aac = AudioCodec(rawValue: "aac")
  /// Uncompressed samples of 16 bits.
  public static let pcm = AudioCodec(rawValue: "pcm_s16le")
}
