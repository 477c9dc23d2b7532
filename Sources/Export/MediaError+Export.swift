// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankRetiming

extension MediaError.Code {
  /// The file extension names an unsupported container.
  public static let unsupportedContainer = Self(rawValue: "unsupported_container")
  /// The composition or a source contains something that this export mode cannot write.
  public static let unsupportedSource = Self(rawValue: "unsupported_source")
  /// A cut lies at a frame that cannot be decoded without other frames.
  ///
  /// The export could neither hide those other frames nor encode the frames at the cut, or its
  /// settings allow neither.
  public static let cutNotOnKeyFrame = Self(rawValue: "cut_not_on_key_frame")
  /// The codec does not support frames of the requested size.
  public static let boxRefused = Self(rawValue: "box_refused")
  /// The export cannot be divided into shards, or not into so many.
  public static let shardRefused = Self(rawValue: "shard_refused")
  /// The file of a shard is missing.
  public static let shardMissing = Self(rawValue: "shard_missing")
  /// The file of a shard is incomplete or has changed since it was made.
  public static let shardDamaged = Self(rawValue: "shard_damaged")
  /// A file is not a shard, or it is a shard of another source, plan or version.
  public static let shardForeign = Self(rawValue: "shard_foreign")
  /// The export cannot be made as small as the settings require.
  public static let fileLengthRefused = Self(rawValue: "file_length_refused")
  /// Text or a logo cannot be drawn into the frames of the export.
  public static let burnInRefused = Self(rawValue: "burn_in_refused")
  /// The container does not support this frame rate.
  public static let outputFrameRateRefused = Self(rawValue: "output_frame_rate_refused")
  /// The linked FFmpeg lacks the encoder of the export.
  public static let missingEncoder = Self(rawValue: "missing_encoder")
  /// The audio cannot be retimed with this algorithm.
  public static let audioRefused = Self(rawValue: "sound_refused")
}

extension MediaError {
  /// Converts an error of a lower layer to an export error.
  init(exporting error: any Error) {
    switch error {
    // A cancelled read of a source means that the export was cancelled.
    case let error as MediaError where error.code == .cancelled: self = .exportCancelled
    case let error as MediaError where Self.audioCodes.contains(error.code):
      self.init(
        .audioRefused, error.message,
        recovery: error.recovery
          ?? Recovery("choose another algorithm; mute supports any speed", .change(.pitchAlgorithm)),
        cause: error.cause)
    case let error as MediaError: self = error
    case let error as CallFailure where error.kind == .cancelled: self = .exportCancelled
    case let error as CallFailure: self.init(error, at: .exporting)
    default: self.init(.init(rawValue: "internal"), "the export failed: \(error)")
    }
  }

  /// The error codes of ``AudioRetimer``.
  private static let audioCodes: Set<Code> = [
    .speedOutOfRange, .unsupportedFormat, .invalidMappings, .invalidSamples, .engine,
  ]

  static func hasNoFrames(_ path: String) -> MediaError {
    MediaError(
      .unsupportedSource, "\(path) has no video", recovery: "choose a movie with video")
  }

  static let exportCancelled = MediaError(
    .cancelled, "the export was cancelled", recovery: "start again; no file was left behind")
}

extension CallStage {
  /// Encoding and writing an export.
  ///
  /// libav also returns system error numbers for damaged data and for formats that an encoder does
  /// not support. The error is then in the source and not on the disk.
  fileprivate static let exporting = CallStage(
    [
      .invalidData: Row(.unsupportedSource, source), .notSupported: Row(.unsupportedSource, source),
    ], other: Row(.writeFailed, "check the disk, or use the other export mode"))
  private static let source: Recovery = "check that the source plays, or use the other export mode"

  /// Reading the files on which a digest depends.
  static let digesting = CallStage(other: Row(.readFailed, "check that the file can be read"))
}
