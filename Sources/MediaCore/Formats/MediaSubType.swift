// SPDX-License-Identifier: Apache-2.0

/// What the bytes of a video frame are.
public enum MediaSubType: Hashable, Sendable {
  /// A frame that a codec compressed.
  case codec(VideoCodec)
  /// Pixels.
  case pixels(PixelFormat)
}
