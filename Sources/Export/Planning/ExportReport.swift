// SPDX-License-Identifier: Apache-2.0

public import OvercrankEditing
public import OvercrankMediaCore
public import OvercrankRetiming

/// What an export did, or what it would do.
public struct ExportReport: Hashable, Sendable, Codable {
  /// The sound of an export.
  public struct Audio: Hashable, Sendable, Codable {
    /// The algorithm that made what plays at other speeds, `copy` where all was copied.
    public let algorithm: String
    /// The samples of each channel.
    public let samples: Int64
    /// The most samples by which an engine missed a piece's length before it was forced.
    public let lengthErrorSamples: Int64
    /// What plays at another speed than was asked for, where the settings let `lowQuality` do so;
    /// a plan does not tell.
    public internal(set) var snapped: [SnappedSpeed] = []
  }

  /// A segment in which the source has fewer frames than a constant rate asks for.
  public struct LowRateRange: Hashable, Sendable, Codable {
    /// Where, in the time of the composition.
    public let range: TimeRange
    /// How many of the source's frames start there in a second.
    public let framesPerSecond: Rational
  }

  /// Packets that are copied one after the other.
  public struct Copy: Hashable, Sendable, Codable {
    /// The source.
    public let path: String
    /// The first of them, counted from 0 in the order in which the source stores them.
    public let firstPacket: Int64
    /// How many.
    public internal(set) var packetCount: Int64

    private enum CodingKeys: String, CodingKey {
      case firstPacket, packetCount
      case path = "file"
    }
  }

  /// A frame that could not be decoded, and that the settings let be held or skipped.
  public struct UndecodableFrame: Hashable, Sendable, Codable {
    /// The source.
    public let path: String
    /// Its number in the source, from 0.
    public let index: Int
    /// When the source shows it.
    public let time: MediaTime

    private enum CodingKeys: String, CodingKey {
      case index
      case path = "file"
      case time = "pts"
    }
  }

  /// A place where a source starts or ends to play without being at its own start or end.
  public struct Cut: Hashable, Sendable, Codable {
    /// What a cut takes.
    public enum Method: String, Hashable, Sendable, Codable {
      /// Nothing: decoding can start or end there.
      case free
      /// Frames that others need are copied along, and on for a tick each.
      case hidden
      /// Frames are encoded.
      case rendered
    }

    /// The source.
    public let path: String
    /// Whether the source starts to play there; else it ends.
    public let isStart: Bool
    /// Where it is cut, in seconds of the source.
    public let source: Rational
    /// Where that is, in the time of the composition.
    public let target: MediaTime
    /// What it takes.
    public let method: Method
    /// How many frames are hidden or encoded.
    public let frames: Int64
    /// The nearest place at or before it where a cut would be free, in the time of the source.
    public let freeBefore: MediaTime?
    /// The nearest place after it where a cut would be free, in the time of the source.
    public let freeAfter: MediaTime?
  }

  /// The file.
  public internal(set) var path = ""
  /// The plan: which range of the source plays when.
  public internal(set) var segments: [TrackSegment] = []
  /// How long it plays.
  public internal(set) var duration = MediaTime.zero
  /// Frames whose packets were copied.
  public internal(set) var framesCopied: Int64 = 0
  /// Frames whose packets were copied only because others need them; each is on for one tick at
  /// most.
  public internal(set) var framesHidden: Int64 = 0
  /// Which packets were copied, in the order in which they were written.
  public internal(set) var copies: [Copy] = []
  /// What each cut of a passthrough took, in the order in which they come.
  public internal(set) var cuts: [Cut] = []
  /// Frames that were encoded: all at a constant rate, those at cuts in a passthrough.
  public internal(set) var framesEncoded: Int64 = 0
  /// Of the encoded ones, those that repeat the one before.
  public internal(set) var framesDuplicated: Int64 = 0
  /// Frames of the source that no frame of the output shows.
  public internal(set) var framesSkipped: Int64 = 0
  /// Frames that could not be decoded, in the order in which they were met; a plan does not tell.
  public internal(set) var undecodable: [UndecodableFrame] = []
  /// Where the source has fewer frames than the constant rate, so that some are repeated or, with
  /// `blend`, stand still.
  public internal(set) var sparse: [LowRateRange] = []
  /// How long pictures are shown that no one asked for, rounded up to nanoseconds.
  public internal(set) var hiddenDuration = Duration.zero
  /// The farthest that a frame's time is from its exact one, rounded up to nanoseconds.
  public internal(set) var maxTimeError = Duration.zero
  /// The sound; nil where there is none.
  public internal(set) var audio: Audio?
  /// By how much the sound outlasts the picture, to the nearest nanosecond; nil without sound.
  public internal(set) var avEndDifference: Duration?
  /// What of the source's tags and tracks is not in the output.
  public internal(set) var lostMetadata: [String] = []
  /// What the user should know although nothing failed.
  public internal(set) var warnings: [String] = []
  /// How long the export took; nil for a plan.
  public internal(set) var elapsed: Duration?

  private enum CodingKeys: String, CodingKey {
    case path = "file"
    case segments = "plan"
    case duration, framesCopied, framesHidden, copies, cuts, framesEncoded, framesDuplicated
    case framesSkipped, maxTimeError, audio, avEndDifference, lostMetadata, warnings
    case undecodable = "undecodableFrames"
    case sparse = "sparseFrames"
    case hiddenDuration = "hidden"
    case elapsed = "wall"
  }
}
