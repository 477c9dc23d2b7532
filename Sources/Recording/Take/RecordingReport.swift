// SPDX-License-Identifier: Apache-2.0

import Logging
public import OvercrankCapture
public import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore

/// The report of a finished take, with the outcome of each frame.
public struct RecordingReport: Hashable, Sendable, Codable {
  /// The path of the recorded file.
  public var path = ""
  /// The ID of the capture format, as in `CaptureFormat.id`.
  public var mode = ""
  /// The frame rate that was requested for the capture.
  public var requestedFrameRate: FrameRate
  /// The frame rate that the driver reported after the request.
  public var negotiatedFrameRate: FrameRate
  /// The measured frame rate, in which lost frames count like stored ones.
  ///
  /// Nil for fewer than two frames.
  public var measuredFrameRate: Rational?
  /// The step of the driver's timestamps, or nil if none is apparent.
  ///
  /// The times of the frames are late by up to one step.
  public var timestampQuantum: Duration?
  /// The result of the frame rate verification before the take.
  ///
  /// Nil if the verification was skipped.
  public var frameRateVerification: FrameRateVerification?
  /// The reason for a frame rate that differs from the requested one.
  ///
  /// Nil if the rate is as requested or was not measured.
  public var rateCause: FrameRateMismatchReason?
  /// The duration of the recorded file.
  public var duration = MediaTime.zero
  /// The time from the start of the stream to the camera's first frame.
  ///
  /// If the driver did not deliver the first frame, its time is computed from the sequence number
  /// of the first delivered frame.
  public var startupDuration: Duration?
  /// The counts of frame periods by outcome, such as stored or lost.
  public var ledger = FrameLedger()
  /// The gaps in order.
  ///
  /// A gap consists of consecutive missing frames.
  public var gaps: [FrameGap] = []
  /// The pauses in order.
  ///
  /// The ledger does not count their frame periods.
  public var pauses: [RecordingPause] = []
  /// The intervals between stored frames.
  ///
  /// Nil for fewer than two frames.
  public var intervals: FrameIntervals?
  /// The latency and processor time of the capture.
  public var cost = CaptureStatistics()
  /// The position of the clip's trigger.
  ///
  /// Nil for a take without a trigger.
  public var trigger: TriggerMark?
  /// The reason why the take ended.
  ///
  /// ``StopReason/isLimit`` is true if a limit ended it.
  public var stoppedBy = StopReason.signal
  /// Whether the file was read back successfully and is playable, even if the take ended with an
  /// error.
  ///
  /// The counterpart of `AVErrorRecordingSuccessfullyFinishedKey`. Independent of ``problem``: if
  /// the device was disconnected, the file is playable although the take has a problem.
  public var isPlayable = false
  /// The codec of the recorded video.
  public var codec: VideoCodec?
  /// The encoding of the video.
  ///
  /// Nil without a file.
  public var video: RecordedVideo?
  /// The report of the audio.
  ///
  /// Nil for a take without audio.
  public var audio: RecordedAudio?
  /// The error that occurred after the start of the take, or nil.
  ///
  /// The file may still be playable.
  public var problem: MediaError?
  /// Warnings about conditions of the take that are not errors.
  public var warnings: [String] = []
  /// The part of each frame that the file asks players to show.
  ///
  /// Set if a zoom could not crop the frames because they were copied.
  ///
  /// Nil for all other files. The encoded report omits it, and contains a warning instead.
  public var cleanAperture: CleanAperture?

  private enum CodingKeys: String, CodingKey {
    case path = "file"
    case mode, rateCause, duration, ledger, gaps, pauses, intervals, cost, trigger
    case frameRateVerification = "proof"
    case requestedFrameRate = "requestedFps"
    case negotiatedFrameRate = "negotiatedFps"
    case measuredFrameRate = "measuredFps"
    case startupDuration = "startup"
    case stoppedBy, codec, video, audio, warnings, timestampQuantum
    case isPlayable = "playable"
    case problem = "error"
  }

  /// Creates a report that contains only the frame rates of a take.
  public init(requestedFrameRate: FrameRate, negotiatedFrameRate: FrameRate) {
    self.requestedFrameRate = requestedFrameRate
    self.negotiatedFrameRate = negotiatedFrameRate
  }
}

extension RecordingReport {
  /// Corrects the report if frames that were counted as stored did not reach the disk, and later
  /// frames did.
  ///
  /// - Parameters:
  ///   - stored: The times of the frames in the file, in the same unit and from the same origin as
  ///     `times`.
  ///   - times: The times of all counted frames, in microseconds after the first one.
  mutating func keep(_ stored: Set<Int64>, of times: [Int64]) {
    // For each frame, the number of stored frames before it.
    var before: [Int64] = [0]
    var missing: [FrameGap] = []
    for time in times {
      let count = before[before.count - 1]
      before.append(count + (stored.contains(time) ? 1 : 0))
      guard before[before.count - 1] == count else { continue }
      if let last = missing.last, last.afterIndex == count - 1 {
        missing[missing.count - 1].count += 1
      } else {
        missing.append(
          FrameGap(
            afterIndex: count - 1, count: 1, time: MediaTime(microseconds: time),
            cause: .lostWriter))
      }
    }
    guard let count = before.last, count < times.count else { return }
    ledger.lostWriter += ledger.stored - count
    ledger.stored = count
    if let last = missing.last, last.afterIndex == count - 1 { duration = last.time }
    intervals = FrameIntervals(microseconds: times.filter(stored.contains))
    let others = gaps.map { gap in
      let index = Int(clamping: gap.afterIndex &+ 1)
      return FrameGap(
        afterIndex: before[max(0, min(index, times.count))] - 1, count: gap.count, time: gap.time,
        cause: gap.cause)
    }
    gaps = (others + missing).sorted { ($0.time.seconds) < ($1.time.seconds) }
  }

  /// Corrects the report if only the first `count` frames reached the disk, although more were
  /// counted as stored.
  ///
  /// - Parameters:
  ///   - count: The number of frames in the file.
  ///   - times: The times of all counted frames, in microseconds after the first one.
  mutating func keep(first count: Int64, of times: [Int64]) {
    let lost = ledger.stored - count
    guard lost > 0 else { return }
    ledger.stored = count
    ledger.lostWriter += lost
    if times.indices.contains(Int(count)) {
      duration = MediaTime(microseconds: times[Int(count)])
    }
    intervals = FrameIntervals(microseconds: Array(times.prefix(Int(count))))
    // All frames after the last one on disk are lost. These frames and the gaps between them become
    // a single gap.
    var after = FrameGap(afterIndex: count - 1, count: lost, time: duration, cause: .lostWriter)
    var kept: [FrameGap] = []
    for gap in gaps {
      if gap.cause == .lostWriter {
        after.count += gap.count
      } else {
        kept.append(
          FrameGap(
            afterIndex: min(gap.afterIndex, count - 1), count: gap.count,
            time: gap.time, cause: gap.cause))
      }
    }
    gaps = kept + [after]
  }
}

/// The encoding of a take's video.
public struct RecordedVideo: Hashable, Sendable, Codable {
  /// The codec of the video in the file.
  public var codec: VideoCodec
  /// The H.264 profile by its libx264 name, such as `high`.
  ///
  /// Nil for other codecs.
  public var profile: String?
  /// The H.264 level, such as `4.2`.
  ///
  /// Nil for other codecs.
  public var level: String?
  /// The average bit rate of the video in bits per second.
  public var bitRate: Int64
  /// The bit rate limit of the encoder in bits per second.
  ///
  /// Nil without a limit or an encoder.
  public var maximumBitRate: Int64?

  private enum CodingKeys: String, CodingKey {
    case codec, profile, level, bitRate
    case maximumBitRate = "maxBitRate"
  }
}

/// A pause of a take.
///
/// Frames that arrive during the pause are left out of the file.
public struct RecordingPause: Hashable, Sendable, Codable {
  /// The position of the pause in the file.
  public let time: MediaTime
  /// The duration from the first left-out frame to the next stored one.
  ///
  /// Nil if the take ended during the pause.
  public private(set) var duration: MediaTime?
  /// The start of the pause, on the driver's clock.
  public let captureTime: MediaTime

  private enum CodingKeys: String, CodingKey {
    case duration
    case captureTime = "capture"
    case time = "at"
  }

  init(time: MediaTime, captureTime: MediaTime) {
    self.time = time
    self.captureTime = captureTime
  }

  mutating func end(atMicroseconds time: Int64) {
    duration = MediaTime(microseconds: time &- captureTime.wholeMicroseconds)
  }
}

/// Percentiles of the intervals between stored frames.
public struct FrameIntervals: Hashable, Sendable, Codable {
  /// The median interval.
  public let p50: Duration
  /// The 95th percentile of the intervals between stored frames.
  public let p95: Duration
  /// The 99th percentile of the intervals between stored frames.
  public let p99: Duration
  /// The longest interval.
  public let max: Duration

  /// Computes the percentiles of the intervals between frame times in microseconds.
  ///
  /// Nil for fewer than two frames.
  ///
  /// A percentile is the smallest interval that the given percentage of intervals does not exceed.
  package init?(microseconds times: [Int64]) {
    let sorted = zip(times.dropFirst(), times).map { $0 &- $1 }.sorted()
    guard let longest = sorted.last else { return nil }
    func percentile(_ percent: Int) -> Duration {
      .microseconds(sorted[Swift.max(0, (sorted.count * percent + 99) / 100 - 1)])
    }
    (p50, p95, p99) = (percentile(50), percentile(95), percentile(99))
    max = .microseconds(longest)
  }
}

extension RecordingReport {
  /// Logs the end of the take, its warnings and its error.
  func log(to logger: Logger) {
    let file: Logger.Metadata = ["path": "\(path)"]
    for warning in warnings { logger.warning("\(warning)", metadata: file) }
    if let problem {
      logger.error("\(problem)", metadata: ["path": "\(path)", "code": "\(problem.code.rawValue)"])
    }
    logger.info(
      "the recording ended",
      metadata: [
        "path": "\(path)", "stored": "\(ledger.stored)", "dropped": "\(ledger.dropped)",
        "stoppedBy": "\(stoppedBy.rawValue)", "isPlayable": "\(isPlayable)",
      ])
  }
}
