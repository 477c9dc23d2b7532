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
  /// How the sound of retimed parts is made.
  public var audioTimePitchAlgorithm = AudioTimePitchAlgorithm.spectral
  /// How rendered pictures are stored.
  public var codec = ExportCodec.h264
  /// libx264's constant rate factor, from 0 (lossless) to 51.
  public var crf = 18
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

/// What an export did.
public struct ExportReport: Sendable {
  /// The sound of an export.
  public struct Sound: Hashable, Sendable {
    /// The algorithm that made what plays at other speeds, `copy` where all was copied.
    public let algorithm: String
    /// The samples of each channel.
    public let samples: Int64
    /// The most samples by which an engine missed a piece's length before it was forced.
    public let lengthErrorSamples: Int64
  }

  /// The file.
  public internal(set) var path = ""
  /// How long it plays.
  public internal(set) var duration = MediaTime.zero
  /// Frames whose packets were copied.
  public internal(set) var framesCopied: Int64 = 0
  /// Frames that were encoded.
  public internal(set) var framesEncoded: Int64 = 0
  /// Of the encoded ones, those that repeat the one before.
  public internal(set) var framesDuplicated: Int64 = 0
  /// Frames of the source that no frame of the output shows.
  public internal(set) var framesSkipped: Int64 = 0
  /// How long pictures are shown that no one asked for, in nanoseconds.
  public internal(set) var hiddenNanoseconds: Int64 = 0
  /// The farthest that a frame's time is from its exact one, in nanoseconds, rounded up.
  public internal(set) var maxTimeErrorNanoseconds: Int64 = 0
  /// The sound; nil where there is none.
  public internal(set) var sound: Sound?
  /// By how much the sound outlasts the picture, in nanoseconds; nil without sound.
  public internal(set) var avEndDifferenceNanoseconds: Int64?
  /// What of the source's tags and tracks is not in the output.
  public internal(set) var lostMetadata: [String] = []
  /// How long the export took, in nanoseconds.
  public internal(set) var wallNanoseconds: Int64 = 0
}
