// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankMovieFormat
public import OvercrankRetiming

/// How a composition becomes a movie.
public enum ExportMode: Hashable, Sendable {
  /// The packets of the picture are copied and get new times; the true variable rate is kept.
  case passthrough
  /// The picture is rendered at a constant rate.
  case constant(FrameRate)
}

/// What a passthrough export does where the source jumps to a picture that needs others.
public enum CutPolicy: String, Hashable, Sendable, CaseIterable {
  /// `squeeze` where few pictures are needed, else `render`.
  case auto
  /// The pictures that it needs are copied along, each of them for one tick.
  case squeeze
  /// The pictures from the cut up to the next one that needs no other are encoded (H.264 only).
  case render
  /// It is refused.
  case keyframe
}

/// How rendered pictures are stored.
public enum ExportCodec: String, Hashable, Sendable, CaseIterable {
  /// H.264 by libx264: 4:2:0, of 10 bits where the source has more than 8.
  case h264
  /// HEVC by libx265: 4:2:0, of 10 bits where the source has more than 8.
  case hevc
  /// FFV1: lossless.
  case ffv1
  /// JPEG pictures, each by itself; 8 bits.
  case mjpeg
}

/// How rendered sound is stored.
public enum ExportAudioCodec: String, Hashable, Sendable, CaseIterable {
  /// As the source's where that is uncompressed and the file can hold it, else AAC.
  case auto
  /// AAC.
  case aac
  /// Uncompressed; only in MOV.
  case pcm
}

/// What an export is to make.
public struct ExportSettings: Sendable {
  /// The file; its extension names the container: `.mov`, `.mp4` or `.m4v`.
  public var path: String
  /// Copied or rendered.
  public var mode: ExportMode
  /// What happens at cuts that are not on a key frame, in a passthrough.
  public var boundary = CutPolicy.auto
  /// How the sound of retimed parts is made.
  public var audioTimePitchAlgorithm = AudioTimePitchAlgorithm.spectral
  /// What becomes of sound at speeds that `lowQuality` does not have.
  public var otherAudioSpeeds = UnsupportedSpeedPolicy.refused
  /// How rendered sound is stored.
  public var audioCodec = ExportAudioCodec.auto
  /// What frames at a constant rate show of the source's.
  public var sampling = FrameSampling.hold
  /// How rendered pictures are stored.
  public var codec = ExportCodec.h264
  /// The constant rate factor of libx264 and libx265, from 0 (lossless) to 51; also of what is
  /// encoded at cuts.
  public var crf = 18
  /// How much time libx264 and libx265 take to make files small: one of ``encoderPresets``.
  public var encoderPreset = "medium"
  /// The profile of H.264 or HEVC by libx264's or libx265's name, such as `baseline` or `high10`;
  /// nil for the one that the pictures need.
  public var profile: String?
  /// The size at which rendered pictures are shown: they fill it, and what juts out is cut off;
  /// nil for their own.
  public var box: VideoSize?
  /// Whether rendered pictures are turned upright, rather than said to be shown so.
  public var appliesRotation = false
  /// What happens where a frame cannot be decoded.
  ///
  /// At a constant rate, `skip` leaves out the frames that would show it, and the one before stays
  /// on; the first and the last are held instead, as are frames that are encoded at cuts.
  public var undecodableFrames = UndecodableFramePolicy.stop
  /// The rate of the sensor, written where the source does not say it; nil to leave it so.
  public var captureFrameRate: FrameRate?
  /// Whether a file of this name may be replaced.
  public var overwrites = false

  /// The values that ``encoderPreset`` may have, the fastest first.
  public static let encoderPresets = [
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
    "placebo",
  ]

  /// Makes the settings of an export.
  public init(path: String, mode: ExportMode) {
    self.path = path
    self.mode = mode
  }

  /// libavformat's name of the container.
  ///
  /// - Throws: `MediaError` with `.unsupportedContainer`.
  func container() throws(MediaError) -> String {
    guard let container = MovieContainer(path: path) else {
      throw MediaError(
        .unsupportedContainer, "\(path) does not say by its extension what to write",
        recovery: "name it .mov, .mp4 or .m4v, which keep exact times")
    }
    return container.rawValue
  }
}
