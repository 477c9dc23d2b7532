// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore
public import OvercrankRetiming

/// The settings of a constant-rate export.
public struct RenderSettings: Hashable, Sendable {
  /// The codec and its settings.
  public var encoding: VideoEncoding
  /// The choice of source frames for each output frame.
  public var sampling: FrameSampling
  /// The output where the motion between two frames cannot be followed; only for a sampling that
  /// synthesizes frames.
  public var lowConfidence = LowConfidencePolicy.flow
  /// The shutter angle of the motion blur; only for `blend`, `flow` and `flowFast`.
  ///
  /// `blend` averages the source frames visible while the shutter is open. `flow` does the same where
  /// these are at least 8. Otherwise it averages the source frames that start in this time, and
  /// synthesized frames between them.
  ///
  /// Nil for 360° with `blend`, and for no motion blur with `flow` and `flowFast`.
  public var shutterAngle: ShutterAngle?
  /// True to even out the brightness of the frames, so that the flicker of the lighting
  /// disappears; false to keep it.
  ///
  /// The frames are decoded once more, before the export renders them.
  public var removesFlicker = false
  /// The text and logo drawn into the frames; nil for neither.
  public var burnIn: BurnIn?
  /// The size of the output as displayed.
  ///
  /// Frames are scaled to fill it, and cropped where they exceed it.
  ///
  /// Nil keeps the source's size.
  public var box: VideoSize?
  /// True to rotate the frames themselves, false to store the rotation as metadata for the player.
  ///
  /// Frames of clips with different rotations are always rotated themselves, because a movie has one
  /// rotation.
  public var appliesRotation: Bool

  /// Creates the settings of a constant-rate export.
  public init(
    encoding: VideoEncoding = .h264(), sampling: FrameSampling = .hold, box: VideoSize? = nil,
    appliesRotation: Bool = false
  ) {
    self.encoding = encoding
    self.sampling = sampling
    self.box = box
    self.appliesRotation = appliesRotation
  }

  /// The shutter angle where the sampling uses one; nil otherwise.
  var appliedShutterAngle: ShutterAngle? {
    sampling == .blend || sampling.synthesizesFrames ? shutterAngle : nil
  }

  /// True if the frames themselves are rotated.
  ///
  /// Burnt-in text must be upright, and animated images store no rotation.
  var rotatesFrames: Bool {
    appliesRotation || burnIn != nil || encoding.animatedImage != nil
  }
}

/// The codec of rendered video and its settings.
public enum VideoEncoding: Hashable, Sendable {
  /// H.264 by libx264: 4:2:0, with 10 bits for sources of more than 8 bits.
  case h264(EncoderSettings = EncoderSettings())
  /// HEVC by libx265: 4:2:0, with 10 bits for sources of more than 8 bits.
  case hevc(EncoderSettings = EncoderSettings())
  /// FFV1: lossless.
  case ffv1
  /// Motion JPEG: independent frames of 8 bits.
  case mjpeg
  /// An animated GIF that repeats forever, with one palette of up to 255 colors and ordered
  /// dithering.
  ///
  /// Each frame begins at the nearest hundredth of a second. The path needs the extension `.gif`.
  case gif
  /// An animated WebP that repeats forever, with a quality from 0 to 100.
  ///
  /// Each frame begins at the nearest millisecond. The path needs the extension `.webp`.
  case webp(quality: Int = 75)

  /// The codec of the output.
  public var codec: VideoCodec {
    switch self {
    case .h264: .h264
    case .hevc: .hevc
    case .ffv1: .ffv1
    case .mjpeg: .mjpeg
    case .gif: VideoCodec(rawValue: "gif")
    case .webp: VideoCodec(rawValue: "webp")
    }
  }

  /// The encoding that a path needs by its extension, `.gif` or `.webp`; nil for another path.
  public init?(animatedImageAt path: String) {
    switch AnimatedImageFormat(path: path) {
    case .gif: self = .gif
    case .webp: self = .webp()
    case nil: return nil
    }
  }
}

/// The settings of libx264 and libx265.
public struct EncoderSettings: Hashable, Sendable {
  /// The constant rate factor, from 0 (lossless) to 51.
  public var crf: Int
  /// The trade-off between encoding time and file size: one of ``presets``.
  public var preset: String
  /// The encoder's profile name, such as `baseline` or `high10`; nil to select it automatically.
  public var profile: String?

  /// The allowed values of ``preset``, fastest first.
  public static let presets = [
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
    "placebo",
  ]

  /// Creates encoder settings.
  public init(crf: Int = 18, preset: String = "medium", profile: String? = nil) {
    self.crf = crf
    self.preset = preset
    self.profile = profile
  }
}
