// SPDX-License-Identifier: Apache-2.0

public import OvercrankAssets
public import OvercrankMediaCore

/// An audit of a movie's timing: gaps, repeated frames, and frame rates that are not as stated.
///
/// Gaps are found from the times of frames alone, so metadata is not needed. Repeated frames are
/// found in the images. A finding is reported only if it is certain: a scene in which nothing moves
/// has no repeated frames.
///
/// ```swift
/// let audit = try TimingAudit(of: Asset(path: "take.mov"), expecting: 240)
/// print(audit.isOK, audit.gaps.count)
/// ```
public struct TimingAudit: Hashable, Sendable, Codable {
  /// A reason why the timing fails the audit.
  public enum Problem: String, Hashable, Sendable, Codable, CaseIterable {
    /// Frames are missing.
    case gaps
    /// Single frames repeat the frame before them.
    case duplicates
    /// A range of frames shows one image.
    case frozen
    /// The frame rate changes within the movie.
    case rateChanges = "rate_changes"
    /// The intervals between frames follow no period, so gaps are unknown.
    case irregular
    /// The capture rate is not the expected rate.
    case unexpectedRate = "unexpected_rate"
    /// The capture rate that the file states contradicts its frames.
    case statedRate = "stated_rate"
    /// Frames cannot be decoded.
    case undecodable
    /// The file is truncated.
    case truncated
  }

  /// Missing frames after a frame.
  public struct Gap: Hashable, Sendable, Codable {
    /// The index of the frame before the gap, from 0.
    public let afterIndex: Int
    /// The number of missing frames.
    public let count: Int
    /// The time at which the first missing frame was due, rounded to a tick of the track.
    public let time: MediaTime

    private enum CodingKeys: String, CodingKey {
      case afterIndex, count
      case time = "at"
    }
  }

  /// A frame that repeats the frame before it.
  public struct Duplicate: Hashable, Sendable, Codable {
    /// The index of the frame, from 0.
    public let index: Int
    /// The index of the frame whose image is repeated.
    public let ofIndex: Int
    /// The time of the frame.
    public let time: MediaTime

    private enum CodingKeys: String, CodingKey {
      case index, ofIndex
      case time = "at"
    }
  }

  /// A range of frames that show one image.
  public struct FrozenStretch: Hashable, Sendable, Codable {
    /// The index of the frame that is repeated, from 0.
    public let firstIndex: Int
    /// The index of the last frame that repeats the first one.
    public let lastIndex: Int
    /// The time of the first frame.
    public let start: MediaTime
    /// The end of the last frame.
    public let end: MediaTime
  }

  /// A part of the movie with a constant frame rate.
  public struct RateSegment: Hashable, Sendable, Codable {
    /// The index of the first frame, from 0.
    public let firstIndex: Int
    /// The index of the last frame.
    public let lastIndex: Int
    /// The frame rate, with missing frames counted.
    public let frameRate: Rational

    private enum CodingKeys: String, CodingKey {
      case firstIndex, lastIndex
      case frameRate = "fps"
    }
  }

  /// The intervals between frames.
  ///
  /// A percentile is the smallest interval that the given percentage of intervals does not exceed.
  public struct Intervals: Hashable, Sendable, Codable {
    /// The shortest.
    public let min: MediaTime
    /// The median.
    public let p50: MediaTime
    /// The 95th percentile.
    public let p95: MediaTime
    /// The 99th percentile.
    public let p99: MediaTime
    /// The longest.
    public let max: MediaTime
  }

  /// Flicker of the lighting.
  public struct Flicker: Hashable, Sendable, Codable {
    /// The frequency of the mains in hertz: 50 or 60.
    ///
    /// The lamps flicker at twice this frequency.
    public let mainsFrequency: Int
    /// The amplitude of the flicker as a fraction of the mean luma, from 0 to 1.
    public let depth: Double

    private enum CodingKeys: String, CodingKey {
      case mainsFrequency = "mainsHz"
      case depth
    }
  }

  /// The number of frames.
  public internal(set) var frameCount: Int
  /// The intervals between frames; nil for fewer than two frames.
  public internal(set) var intervals: Intervals?
  /// Whether the intervals are multiples of one period in each of ``segments``, apart from jitter.
  public internal(set) var isRegular: Bool
  /// Whether the track's ticks are too coarse to show every gap of one frame.
  ///
  /// Matroska files often have ticks of one millisecond.
  public internal(set) var isCoarse: Bool
  /// The gaps in order; empty if the intervals are not regular.
  public internal(set) var gaps: [Gap]
  /// The parts of constant rate in order; one unless the rate changes.
  public internal(set) var segments: [RateSegment]
  /// The frame rate of the longest segment, with missing frames counted.
  ///
  /// Nil for fewer than two frames.
  public internal(set) var measuredFrameRate: Rational?
  /// The rate of frames that differ, if frames are repeated in a regular pattern.
  ///
  /// A camera of 120 fps whose frames are all stored twice has 120 here. Nil if no pattern was
  /// found.
  public internal(set) var distinctFrameRate: Rational?
  /// Whether the images of frames were compared.
  ///
  /// If not, ``duplicates`` and ``frozen`` are empty.
  public internal(set) var comparesImages: Bool
  /// Single frames, or a few in a row, that repeat the frame before them; in order.
  public internal(set) var duplicates: [Duplicate]
  /// The ranges of at least ten repeated frames, in order.
  public internal(set) var frozen: [FrozenStretch]
  /// The indices of the frames that cannot be decoded.
  public internal(set) var undecodableFrames: [Int]
  /// The capture rate that the file states; nil if unknown.
  public internal(set) var captureFrameRate: FrameRate?
  /// The source of ``captureFrameRate``: the key of a tag, or `edit_list`.
  public internal(set) var captureFrameRateSource: String?
  /// Whether the stated capture rate agrees with the frames; nil without a stated rate.
  public internal(set) var captureFrameRateAgrees: Bool?
  /// The capture rate that the caller expects; nil for none.
  public internal(set) var expectedFrameRate: FrameRate?
  /// Flicker of the lighting; nil if none was found.
  ///
  /// It does not count as a problem of the timing.
  public internal(set) var flicker: Flicker?
  /// The reasons why the timing fails the audit, in the order of ``Problem``.
  public internal(set) var problems: [Problem]

  /// Whether no problem was found.
  public var isOK: Bool { problems.isEmpty }

  enum CodingKeys: String, CodingKey {
    case frameCount, intervals, gaps, segments, duplicates, frozen, undecodableFrames, flicker
    case problems, comparesImages, expectedFrameRate = "expectedFps"
    case isRegular = "regular"
    case isCoarse = "coarse"
    case measuredFrameRate = "measuredFps"
    case distinctFrameRate = "distinctFps"
    case captureFrameRate = "captureFps"
    case captureFrameRateSource = "captureFpsSource"
    case captureFrameRateAgrees = "captureFpsAgrees"
  }

  /// Audits the video track of an asset.
  ///
  /// Blocks until all frames are decoded. May be called from any thread.
  ///
  /// - Parameters:
  ///   - asset: The asset.
  ///   - expectedFrameRate: The capture rate that the movie should have, to within one percent. Nil
  ///     expects nothing.
  ///   - comparesImages: Whether frames are decoded and compared. If not, only times are audited.
  ///   - clock: The capture times; the times of the movie itself are audited without one, and unless
  ///     its time map is known.
  ///   - progress: Receives the number of frames that were decoded.
  /// - Throws: `MediaError` with `.invalidData` for an asset without video, or the error of reading
  ///   the file. Frames that cannot be decoded are a finding and no error.
  public init(
    of asset: Asset, expecting expectedFrameRate: FrameRate? = nil, comparesImages: Bool = true,
    clock: CaptureClock? = nil, progress: (_ frame: Int) -> Void = { _ in }
  ) throws(MediaError) {
    guard let track = asset.videoTrack else {
      throw MediaError(
        .invalidData, "\(asset.path) contains no video", recovery: "choose a movie with video")
    }
    let map = clock.flatMap { $0.source == .map ? $0 : nil }
    self.init(times: track.frames, map.map { Self.lines(track.frames, $0) })
    self.comparesImages = comparesImages
    self.expectedFrameRate = expectedFrameRate
    if comparesImages {
      let images = try FrameComparison(of: asset, track, progress)
      undecodableFrames = images.undecodable
      let seconds = track.frames.entries.map { Double($0.ticks) / Double(track.timescale) }
      let line = LightFlicker.line(in: images.strips, at: seconds)
      let repeated = RepeatedFrames(images.differences, flickers: line != nil).indices()
      addRepeated(repeated, track.frames)
      // A regular pattern of repeated frames looks like flicker, so flicker is only reported
      // without such a pattern.
      if repeated.count * 10 < frameCount {
        flicker = line.map { Flicker(mainsFrequency: $0.mains, depth: $0.depth) }
      }
    }
    let stated = asset.captureFrameRate
    captureFrameRate = stated?.rate
    captureFrameRateSource = stated?.source
    captureFrameRateAgrees = stated.map {
      agrees($0.rate, hasCaptureTimes: asset.recording != nil)
    }
    problems = foundProblems(isTruncated: asset.truncation != nil)
  }
}
