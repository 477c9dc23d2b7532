// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
public import OvercrankRetiming

/// How pictures are rendered at a constant rate.
public struct RenderSettings: Hashable, Sendable {
  /// How the pictures are stored.
  public var encoding: VideoEncoding
  /// What frames show of the source's.
  public var sampling: FrameSampling
  /// The size at which pictures are shown: they fill it, and what juts out is cut off; nil for
  /// their own.
  public var box: VideoSize?
  /// Whether pictures are turned upright, rather than said to be shown so.
  public var appliesRotation: Bool

  /// Makes the settings of pictures at a constant rate.
  public init(
    encoding: VideoEncoding = .h264(), sampling: FrameSampling = .hold, box: VideoSize? = nil,
    appliesRotation: Bool = false
  ) {
    self.encoding = encoding
    self.sampling = sampling
    self.box = box
    self.appliesRotation = appliesRotation
  }
}

/// How rendered pictures are stored.
public enum VideoEncoding: Hashable, Sendable {
  /// H.264 by libx264: 4:2:0, of 10 bits where the source has more than 8.
  case h264(EncoderSettings = EncoderSettings())
  /// HEVC by libx265: 4:2:0, of 10 bits where the source has more than 8.
  case hevc(EncoderSettings = EncoderSettings())
  /// FFV1: lossless.
  case ffv1
  /// JPEG pictures, each by itself; 8 bits.
  case mjpeg

  /// What the pictures are then.
  public var codec: VideoCodec {
    switch self {
    case .h264: .h264
    case .hevc: .hevc
    case .ffv1: .ffv1
    case .mjpeg: .mjpeg
    }
  }
}

/// What libx264 and libx265 are told.
public struct EncoderSettings: Hashable, Sendable {
  /// The constant rate factor, from 0 (lossless) to 51.
  public var crf: Int
  /// How much time the encoder takes to make files small: one of ``presets``.
  public var preset: String
  /// The profile by the encoder's name, such as `baseline` or `high10`; nil for the one that the
  /// pictures need.
  public var profile: String?

  /// The values that ``preset`` may have, the fastest first.
  public static let presets = [
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
    "placebo",
  ]

  /// Makes the settings of an encoder.
  public init(crf: Int = 18, preset: String = "medium", profile: String? = nil) {
    self.crf = crf
    self.preset = preset
    self.profile = profile
  }
}
