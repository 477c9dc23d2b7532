// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat
public import OvercrankRetiming

/// The method of exporting video.
public enum ExportMode: Hashable, Sendable {
  /// Copies the video packets with new times, so a source with a variable frame rate keeps it.
  ///
  /// `boundary` is the policy for cuts at frames that are not key frames. Frames encoded at cuts
  /// use the constant rate factor `crf`, from 0 (lossless) to 51.
  case passthrough(boundary: CutPolicy = .auto, crf: Int = 18)
  /// Renders the video at a constant frame rate.
  case constant(FrameRate, RenderSettings = RenderSettings())

  /// True for a passthrough export, false for a constant frame rate.
  public var isPassthrough: Bool {
    if case .passthrough = self { true } else { false }
  }
}

/// The policy of a passthrough export for cuts at frames that need other frames for decoding.
public enum CutPolicy: String, Hashable, Sendable, CaseIterable {
  /// `squeeze` if few extra frames are needed, else `render`.
  case auto
  /// Copies the frames that are needed for decoding and shows each for one tick.
  case squeeze
  /// Encodes the frames from the cut up to the next frame that needs no other; H.264 only.
  case render
  /// Refuses the cut with `.cutNotOnKeyFrame`.
  case keyframe
}

/// The settings of an export.
public struct ExportSettings: Sendable {
  /// The output file; its extension selects the container: `.mov`, `.mp4` or `.m4v`, or
  /// `.gif` or `.webp` for an animated image without audio.
  public var path: String
  /// The method of exporting video.
  public var mode: ExportMode
  /// The algorithm for audio at speeds other than 1.
  public var audioTimePitchAlgorithm = AudioTimePitchAlgorithm.spectral
  /// The policy for audio speeds that `lowQuality` does not support.
  public var otherAudioSpeeds = UnsupportedSpeedPolicy.refused
  /// The codec of rendered audio: AAC, or PCM in MOV only.
  ///
  /// Nil keeps uncompressed audio uncompressed if the container allows it, and selects AAC
  /// otherwise. Uncompressed audio keeps its sample format.
  public var audioCodec: AudioCodec?
  /// The policy for frames that cannot be decoded.
  ///
  /// At a constant rate, `skip` writes no output frames for such a frame, so the previous frame
  /// stays on screen. `skip` acts like `hold` for the first and the last frame, and for frames
  /// encoded at cuts.
  public var undecodableFrames = UndecodableFramePolicy.stop
  /// The capture frame rate to write if the source does not state one; nil to write none in this
  /// case.
  public var captureFrameRate: FrameRate?
  /// True to store in the metadata of a constant-rate export which of its frames repeat the image
  /// before them.
  ///
  /// ``Asset/frameTimingRows()`` then reports them.
  public var marksRepeatedFrames = false
  /// True to replace an existing file, false to throw if the file exists.
  public var overwrites = false
  /// The part of the export to write.
  ///
  /// A shard of a constant-rate export is written into a file of its own beside ``path``.
  public var part = ExportPart.whole
  /// The digest to store in the output's metadata, from ``ExportSession/digest(_:version:)``; nil
  /// to store none.
  ///
  /// With a digest, the temporary file is locked while it is written.
  public var digest: ExportDigest?
  /// The greatest permitted size of the file in bytes; nil for any size.
  ///
  /// If the file is larger with the requested quality, it is encoded again with a lower one, up to
  /// nine times, until it has at least 90 % of this size. An animated image gets fewer colors (GIF) or
  /// a lower quality (WebP), then smaller frames, but keeps its frame rate. Only for H.264, HEVC and
  /// animated images that are encoded completely. ``ExportReport/fileLength-swift.property`` reports the result.
  ///
  /// The counterpart of `AVAssetExportSession.fileLengthLimit`.
  public var fileLengthLimit: Int64?
  /// The number of processors to use; nil for all.
  ///
  /// For several exports at the same time.
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
