// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
public import OvercrankMediaCore
public import OvercrankRaster
public import OvercrankRetiming

/// The settings of a constant-rate export.
public struct RenderSettings: Hashable, Sendable {
  /// The codec of the output and the settings of its encoder.
  public var encoding: VideoEncoding
  /// The method that chooses the source frames for each output frame.
  public var sampling: FrameSampling
  /// The policy for output frames at which the motion between two captured frames cannot be
  /// estimated.
  ///
  /// Only for a sampling that synthesizes frames.
  public var lowConfidence = LowConfidencePolicy.flow
  /// The shutter angle of the motion blur.
  ///
  /// Only for `blend`, `flow` and `flowFast`.
  ///
  /// `blend` averages the source frames that are visible while the shutter is open. `flow` does the
  /// same if at least 8 source frames are visible. Otherwise it averages the source frames that
  /// start while the shutter is open, and frames synthesized between them.
  ///
  /// Nil means 360° with `blend`, and no motion blur with `flow` and `flowFast`.
  public var shutterAngle: ShutterAngle?
  /// Whether the brightness of the frames is evened out, so that the flicker of lamps disappears.
  ///
  /// This decodes the frames one additional time, before the export renders them.
  public var removesFlicker = false
  /// The text and logo drawn into the frames; nil for neither.
  public var burnIn: BurnIn?
  /// The size of the output after rotation.
  ///
  /// Frames are scaled to fill this size, and cropped where they exceed it.
  ///
  /// Nil keeps the source's size.
  public var box: VideoSize?
  /// Whether the frames themselves are rotated.
  ///
  /// If false, the rotation is stored as metadata for the player.
  ///
  /// The frames of clips with different rotations are always rotated, because a movie has only one
  /// rotation.
  public var appliesRotation: Bool

  /// Creates the settings of a constant-rate export.
  public init(
    encoding: VideoEncoding = .h264(), sampling: FrameSampling = .hold, box: VideoSize? = nil,
    appliesRotation: Bool = false
  ) {
    (self.encoding, self.sampling, self.box) = (encoding, sampling, box)
    self.appliesRotation = appliesRotation
  }

  /// The shutter angle if the sampling uses one; otherwise nil.
  var appliedShutterAngle: ShutterAngle? {
    sampling == .blend || sampling.synthesizesFrames ? shutterAngle : nil
  }

  /// Whether the frames themselves are rotated.
  ///
  /// Burned-in text must be upright, and animated images store no rotation.
  var rotatesFrames: Bool {
    appliesRotation || burnIn != nil || encoding.animatedImage != nil
  }
}

/// The codec of rendered video and its settings.
public enum VideoEncoding: Hashable, Sendable {
  /// H.264, encoded by libx264 in 4:2:0.
  ///
  /// Sources of more than 8 bits are encoded with 10 bits.
  case h264(EncoderSettings = EncoderSettings())
  /// HEVC, encoded by libx265 in 4:2:0.
  ///
  /// Sources of more than 8 bits are encoded with 10 bits.
  case hevc(EncoderSettings = EncoderSettings())
  /// FFV1, which is lossless.
  case ffv1
  /// Motion JPEG: independent frames with 8 bits.
  case mjpeg
  /// An animated GIF that repeats forever, with one palette of up to 255 colors and ordered
  /// dithering.
  ///
  /// Each frame begins at the nearest hundredth of a second. The path needs the extension `.gif`.
  case gif
  /// An animated WebP that repeats forever.
  ///
  /// Its quality is from 0 to 100.
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

  /// The encoding for a path with the extension `.gif` or `.webp`; nil for another path.
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
