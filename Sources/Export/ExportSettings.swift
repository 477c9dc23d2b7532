// SPDX-License-Identifier: Apache-2.0
public import MediaTiming
public import Retiming

/// How a composition becomes a movie.
public enum ExportMode: Hashable, Sendable {
  /// The packets of the picture are copied and get new times; the true variable rate is kept.
  case passthrough
  /// The picture is rendered at a constant rate.
  case constant(FrameRate)
}

/// What a passthrough export does where the source jumps to a picture that needs others.
public enum ExportBoundary: String, Hashable, Sendable, CaseIterable {
  /// What is cheapest; so far that is `squeeze`.
  case auto
  /// The pictures that it needs are copied along, each of them for one tick.
  case squeeze
  /// It is refused.
  case keyframe
}

/// How rendered pictures are stored.
public enum ExportCodec: String, Hashable, Sendable, CaseIterable {
  /// H.264 by libx264, 4:2:0.
  case h264
  /// JPEG pictures, each by itself.
  case mjpeg
  /// FFV1: lossless.
  case ffv1

  var encoderName: String { self == .h264 ? "libx264" : rawValue }
}

/// What an export is to make.
public struct ExportSettings: Sendable {
  /// The file; its extension names the container: `.mov`, `.mp4` or `.m4v`.
  public var path: String
  /// Copied or rendered.
  public var mode: ExportMode
  /// What happens at cuts that are not on a key frame, in a passthrough.
  public var boundary = ExportBoundary.auto
  /// How the sound of retimed parts is made.
  public var audioTimePitchAlgorithm = AudioTimePitchAlgorithm.spectral
  /// What becomes of sound at speeds that `lowQuality` does not have.
  public var otherAudioSpeeds = OtherSpeeds.refused
  /// How rendered pictures are stored.
  public var codec = ExportCodec.h264
  /// libx264's constant rate factor, from 0 (lossless) to 51.
  public var crf = 18
  /// The rate of the sensor, written where the source does not say it; nil to leave it so.
  public var captureFrameRate: FrameRate?
  /// Whether a file of this name may be replaced.
  public var overwrites = false

  /// Makes the settings of an export.
  public init(path: String, mode: ExportMode) {
    self.path = path
    self.mode = mode
  }

  /// libavformat's name of the container.
  ///
  /// - Throws: `ExportError` with `.unsupportedContainer`.
  func container() throws(ExportError) -> String {
    let name = path.split(separator: "/").last ?? ""
    switch name.split(separator: ".").last.map({ $0.lowercased() }) {
    case "mov" where name.contains("."): return "mov"
    case "mp4", "m4v": return "mp4"
    default:
      throw ExportError(
        .unsupportedContainer, "\(path) does not say by its extension what to write",
        hint: "name it .mov, .mp4 or .m4v, which keep exact times")
    }
  }
}
