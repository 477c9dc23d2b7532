// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat
public import OvercrankRetiming

/// The method of exporting video.
public enum ExportMode: Hashable, Sendable {
  /// Copies the video packets and gives them new times.
  ///
  /// A source with a variable frame rate keeps it.
  ///
  /// `boundary` is the policy for cuts at frames that are not key frames. Frames encoded at cuts
  /// use the constant rate factor `crf` of H.264, from 0 (lossless) to 51. HEVC uses one that is lower by 8,
  /// for the same quality.
  case passthrough(boundary: CutPolicy = .auto, crf: Int = 18)
  /// Renders the video at a constant frame rate.
  case constant(FrameRate, RenderSettings = RenderSettings())

  /// Whether this is a passthrough export.
  public var isPassthrough: Bool {
    if case .passthrough = self { true } else { false }
  }
}

/// The policy of a passthrough export for cuts at frames that need other frames for decoding.
public enum CutPolicy: String, Hashable, Sendable, CaseIterable {
  /// Applies `render` if the frames can be encoded, otherwise `squeeze`.
  ///
  /// A range of more than 300 frames without a start of decoding, such as with intra refresh, is not encoded
  /// if `squeeze` is possible.
  case auto
  /// Copies the frames that are needed for decoding, and shows each of them for one tick.
  ///
  /// Frames before the start and after the end of the movie are hidden by its edit list.
  case squeeze
  /// Encodes the frames from the cut to the next frame at which decoding can start.
  ///
  /// Possible for H.264 and HEVC.
  case render
  /// Rejects the cut with an error, `.cutNotOnKeyFrame`.
  case keyframe
}

/// The settings of an export.
public struct ExportSettings: Sendable {
  /// The path of the output file.
  ///
  /// Its extension selects the container: `.mov`, `.mp4` or `.m4v`, or `.gif` or `.webp` for an
  /// animated image without audio.
  public var path: String
  /// The method of exporting video.
  public var mode: ExportMode
  /// The algorithm for audio at speeds other than 1.
  public var audioTimePitchAlgorithm = AudioTimePitchAlgorithm.spectral
  /// The policy for audio speeds that the algorithm `lowQuality` does not support.
  public var otherAudioSpeeds = UnsupportedSpeedPolicy.refused
  /// The codec of rendered audio: AAC or, only in MOV, PCM.
  ///
  /// Nil keeps uncompressed audio uncompressed if the container allows it, and selects AAC
  /// otherwise. Uncompressed audio keeps its sample format.
  public var audioCodec: AudioCodec?
  /// The policy for frames that cannot be decoded.
  ///
  /// In a constant-rate export, `skip` writes no output frames for such a frame, so the previous
  /// frame stays on screen. `skip` acts like `hold` for the first and the last frame, and for
  /// frames encoded at cuts.
  public var undecodableFrames = UndecodableFramePolicy.stop
  /// The capture frame rate to write if the source does not state one; nil to write none in this
  /// case.
  public var captureFrameRate: FrameRate?
  /// True to store a time map in the movie, with the capture time of each frame; false for none.
  ///
  /// ``Asset/timeMap`` then reads it. Animated images have none.
  public var writesTimeMap = true
  /// True to replace an existing file, false to throw if the file exists.
  public var overwrites = false
  /// The part of the export to write.
  ///
  /// A shard of a constant-rate export is written to a separate file next to ``path``.
  public var part = ExportPart.whole
  /// The digest to store in the output's metadata; nil to store none.
  ///
  /// With a digest, the temporary file is locked while it is written.
  ///
  /// The method ``ExportSession/digest(_:version:)`` computes the digest.
  public var digest: ExportDigest?
  /// The greatest permitted size of the file in bytes; nil for any size.
  ///
  /// If the file is larger with the requested quality, it is encoded again with a lower quality, up
  /// to nine times, until its size is between 90 % and 100 % of this limit. An animated image gets
  /// fewer colors (GIF) or a lower quality (WebP), then smaller frames, but keeps its frame rate.
  /// The limit is supported for H.264, HEVC and animated images, if all frames are encoded.
  /// ``ExportReport/fileLength-swift.property`` reports the result.
  ///
  /// The counterpart of `AVAssetExportSession.fileLengthLimit`.
  public var fileLengthLimit: Int64?
  /// The number of processors to use; nil for all.
  ///
  /// Set this if several exports run at the same time.
  public var processorCount: Int?

  /// Creates export settings.
  public init(path: String, mode: ExportMode) {
    self.path = path
    self.mode = mode
  }

  /// The number of processors that the export's threads share, at least 1.
  var usedProcessorCount: Int { max(1, processorCount ?? Processors.count) }

  /// Returns libavformat's name of the container.
  ///
  /// - Throws: `MediaError` with `.unsupportedContainer`.
  func container() throws(MediaError) -> String {
    if let format = AnimatedImageFormat(path: path) { return format.rawValue }
    guard let container = MovieContainer(path: path) else {
      throw MediaError(
        .unsupportedContainer, "the extension of \(path) does not name a supported container",
        recovery: "use the extension .mov, .mp4 or .m4v, or .gif or .webp for an animated image")
    }
    return container.rawValue
  }
}
