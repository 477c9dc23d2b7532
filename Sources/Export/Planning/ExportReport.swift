// SPDX-License-Identifier: Apache-2.0

import Logging
public import OvercrankEditing
public import OvercrankMediaCore
public import OvercrankRetiming

/// The result of an export, or of its plan.
public struct ExportReport: Hashable, Sendable, Codable {
  /// The report of an export's audio.
  public struct Audio: Hashable, Sendable, Codable {
    /// The algorithm for speeds other than 1; `copy` if all packets were copied.
    public let algorithm: String
    /// The number of audio samples per channel in the output.
    public let samples: Int64
    /// The greatest number of samples that the renderer failed to deliver for one segment.
    ///
    /// Silence replaces missing samples.
    public let lengthErrorSamples: Int64
    /// The ranges that play at another speed than requested.
    ///
    /// The list is always empty in a plan. In an export, it is empty unless the algorithm is
    /// `lowQuality` and the settings allow unsupported speeds.
    public internal(set) var snapped: [SnappedSpeed] = []
  }

  /// A segment with fewer source frames than output frames.
  public struct LowRateRange: Hashable, Sendable, Codable {
    /// The range of the segment in composition time.
    public let range: TimeRange
    /// The number of source frames for each second of the composition.
    public let framesPerSecond: Rational
  }

  /// A range of consecutive packets that were copied.
  public struct Copy: Hashable, Sendable, Codable {
    /// The path of the source file.
    public let path: String
    /// The index of the first packet in the source's decode order, from 0.
    public let firstPacket: Int64
    /// The number of copied packets in the range.
    public internal(set) var packetCount: Int64

    private enum CodingKeys: String, CodingKey {
      case firstPacket, packetCount
      case path = "file"
    }
  }

  /// A frame that could not be decoded.
  ///
  /// The export shows the frame before this one instead, or has no output frames for this one.
  public struct UndecodableFrame: Hashable, Sendable, Codable {
    /// The path of the source file.
    public let path: String
    /// The index of the frame in the source, from 0.
    public let index: Int
    /// The presentation time of the frame in the source.
    public let time: MediaTime

    private enum CodingKeys: String, CodingKey {
      case index
      case path = "file"
      case time = "pts"
    }
  }

  /// A position in a source at which playback starts or ends, other than the start and the end of
  /// the source.
  public struct Cut: Hashable, Sendable, Codable {
    /// The method by which a cut is made.
    public enum Method: String, Hashable, Sendable, Codable {
      /// Decoding can start or end at the cut, so no extra frames are needed.
      case free
      /// Frames that are needed for decoding are copied and shown for one tick each.
      case hidden
      /// Frames near the cut are encoded.
      case rendered
    }

    /// The path of the source file.
    public let path: String
    /// Whether playback of the source starts at the cut.
    ///
    /// If false, playback ends there.
    public let isStart: Bool
    /// The position of the cut in source seconds.
    public let source: Rational
    /// The position of the cut in composition time.
    public let target: MediaTime
    /// The method used at the cut.
    public let method: Method
    /// The number of frames that are hidden or encoded at the cut.
    public let frames: Int64
    /// The nearest position at or before this cut, in source time, that needs no extra frames.
    public let freeBefore: MediaTime?
    /// The nearest position after this cut, in source time, that needs no extra frames.
    public let freeAfter: MediaTime?
  }

  /// The confidence in synthesized frames, from 0 to 1: how well the motion between the captured
  /// frames could be followed.
  public struct Confidence: Hashable, Sendable, Codable {
    /// The lowest confidence of any synthesized frame.
    public let lowest: Double
    /// The mean confidence of all synthesized frames.
    public let mean: Double
  }

  /// The size of a file for which a limit was set.
  public struct FileLength: Hashable, Sendable, Codable {
    /// The greatest permitted size of the file in bytes.
    public let limit: Int64
    /// The size of the exported file in bytes.
    public let byteCount: Int64
    /// The constant rate factor of the file.
    ///
    /// This is the requested one, or a greater one that fits the limit.
    ///
    /// Nil for an animated image.
    public let crf: Double?
    /// The quality of a WebP; nil for other formats.
    ///
    /// This is the requested quality, or a lower one that fits the limit.
    public let quality: Int?
    /// The greatest number of colors of a GIF; nil for other formats.
    public let colorCount: Int?
    /// The width of an animated image in pixels; nil for movies.
    public let width: Int?
    /// The height of an animated image in pixels; nil for movies.
    public let height: Int?
    /// The number of times that the movie or image was encoded.
    public let attemptCount: Int

    init(
      limit: Int64, byteCount: Int64, crf: Double?, quality: Int? = nil, colorCount: Int? = nil,
      width: Int? = nil, height: Int? = nil, attemptCount: Int
    ) {
      (self.limit, self.byteCount, self.attemptCount) = (limit, byteCount, attemptCount)
      (self.crf, self.quality, self.colorCount) = (crf, quality, colorCount)
      (self.width, self.height) = (width, height)
    }

    private enum CodingKeys: String, CodingKey {
      case crf, quality, width, height
      case colorCount = "colors"
      case limit = "limitBytes"
      case byteCount = "bytes"
      case attemptCount = "attempts"
    }
  }

  /// The range of output frames in a shard of an export.
  public struct Shard: Hashable, Sendable, Codable {
    /// The number of the shard, from 1.
    public let number: Int
    /// The number of shards of the export.
    public let count: Int
    /// The index of the first output frame in the shard, from 0.
    public let firstFrame: Int64
    /// The number of output frames in the shard.
    public let frameCount: Int64
  }

  /// The path of the output file.
  public internal(set) var path = ""
  /// The segments of the composition's video track.
  public internal(set) var segments: [TrackSegment] = []
  /// The duration of the output.
  public internal(set) var duration = MediaTime.zero
  /// The number of copied frames, not counting hidden ones.
  public internal(set) var framesCopied: Int64 = 0
  /// The number of frames that are copied only for decoding.
  ///
  /// Each of them is shown for at most one tick.
  public internal(set) var framesHidden: Int64 = 0
  /// The copied packets in file order.
  public internal(set) var copies: [Copy] = []
  /// The cuts of a passthrough export in order.
  public internal(set) var cuts: [Cut] = []
  /// The number of encoded frames.
  ///
  /// A constant-rate export encodes all frames, a passthrough export only frames at cuts.
  public internal(set) var framesEncoded: Int64 = 0
  /// The number of copied frames whose header was changed, so that decoding starts anew there.
  ///
  /// These are HEVC frames at cuts. Their pixels are unchanged.
  public internal(set) var framesHeaderChanged: Int64 = 0
  /// The number of encoded frames without the metadata of Dolby Vision (RPU), among copied frames that have
  /// it.
  public internal(set) var framesWithoutRPU: Int64 = 0
  /// The number of encoded frames that repeat the frame before.
  public internal(set) var framesDuplicated: Int64 = 0
  /// The number of source frames that the output does not show.
  public internal(set) var framesSkipped: Int64 = 0
  /// The number of output frames that were synthesized from two captured ones.
  ///
  /// A plan also counts frames at scene cuts, where an export holds the last frame instead.
  public internal(set) var framesSynthesized: Int64 = 0
  /// The confidence in the synthesized frames; nil without such frames, and in a plan.
  public internal(set) var synthesizedConfidence: Confidence?
  /// The shutter angle of the motion blur in degrees; nil without motion blur.
  public internal(set) var shutterDegrees: Double?
  /// The frames that could not be decoded, in order; empty in a plan.
  public internal(set) var undecodable: [UndecodableFrame] = []
  /// Ranges with fewer source frames than output frames, where frames are repeated.
  public internal(set) var sparse: [LowRateRange] = []
  /// The total time for which hidden frames are shown, rounded up to nanoseconds.
  public internal(set) var hiddenDuration = Duration.zero
  /// The greatest rounding error of a frame time, rounded up to nanoseconds.
  public internal(set) var maxTimeError = Duration.zero
  /// The report of the audio; nil without audio.
  public internal(set) var audio: Audio?
  /// The end of the audio minus the end of the video, to the nearest nanosecond; nil without audio.
  public internal(set) var avEndDifference: Duration?
  /// The metadata and tracks of the sources that the output does not keep.
  public internal(set) var lostMetadata: [String] = []
  /// Warnings about the output.
  ///
  /// A warning does not make the export fail.
  public internal(set) var warnings: [String] = []
  /// The range of frames in the shard; nil unless a shard was made.
  public internal(set) var shard: Shard?
  /// The size of the exported file and the limit that was set.
  ///
  /// Nil without a limit of the file size, and in a plan.
  public internal(set) var fileLength: FileLength?
  /// The time that the export took; nil in a plan.
  public internal(set) var elapsed: Duration?

  private enum CodingKeys: String, CodingKey {
    case path = "file"
    case segments = "plan"
    case duration, framesCopied, framesHidden, copies, cuts, framesEncoded, framesDuplicated
    case framesHeaderChanged
    case framesWithoutRPU = "framesWithoutRpu"
    case framesSkipped, framesSynthesized, synthesizedConfidence, shutterDegrees
    case maxTimeError, audio, avEndDifference, lostMetadata, warnings
    case undecodable = "undecodableFrames", shard, fileLength
    case sparse = "sparseFrames"
    case hiddenDuration = "hidden"
    case elapsed = "wall"
  }
}

extension ExportReport {
  /// Logs the finished export, lost metadata and undecodable frames.
  func log(to logger: Logger) {
    let file: Logger.Metadata = ["path": "\(path)"]
    if !lostMetadata.isEmpty {
      logger.warning("not kept: \(lostMetadata.joined(separator: ", "))", metadata: file)
    }
    for warning in warnings { logger.warning("\(warning)", metadata: file) }
    for frame in undecodable {
      logger.warning(
        "a frame could not be decoded",
        metadata: ["path": "\(frame.path)", "frame": "\(frame.index)"])
    }
    logger.info(
      "the export ended",
      metadata: [
        "path": "\(path)", "copied": "\(framesCopied)", "encoded": "\(framesEncoded)",
        "duration": "\(duration)",
      ])
  }
}
