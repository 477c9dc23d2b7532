// SPDX-License-Identifier: Apache-2.0

/// The encoding of a video frame's bytes: a codec or a pixel format.
public enum MediaSubType: Hashable, Sendable {
  /// A frame compressed by a codec.
  case codec(VideoCodec)
  /// Uncompressed pixels.
  case pixels(PixelFormat)
}
