// SPDX-License-Identifier: Apache-2.0

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
