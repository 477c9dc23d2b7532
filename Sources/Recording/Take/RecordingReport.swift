// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore

/// What a finished take is, and what became of each of its frames.
public struct RecordingReport: Hashable, Sendable, Codable {
  /// The file.
  public var path = ""
  /// The mode that was recorded, as `modes` names it.
  public var mode = ""
  /// The rate that was asked of the device.
  public var requestedFrameRate: FrameRate
  /// The rate that the device granted.
  public var negotiatedFrameRate: FrameRate
  /// The rate that the device delivered, losses included; nil for fewer than two frames.
  public var measuredFrameRate: Rational?
  /// What was measured before the take began; nil where nothing was.
  public var proof: FrameRateVerification?
  /// Why the rate of the take is not the one that was asked for; nil where it is.
  public var rateCause: FrameRateMismatchReason?
  /// How long the file plays.
  public var duration = MediaTime.zero
  /// From switching the stream on to the first period that the driver claims.
  public var startupDuration: Duration?
  /// What became of every frame period.
  public var ledger = FrameLedger()
  /// Where frames are missing, in order.
  public var gaps: [FrameGap] = []
  /// Where the take was paused, in order; none of these periods is in the ledger.
  public var pauses: [RecordingPause] = []
  /// The times from one stored frame to the next; nil for fewer than two.
  public var intervals: FrameIntervals?
  /// What capturing cost.
  public var cost = CaptureStatistics()
  /// Where the trigger is that the take was made for; nil where it was simply begun.
  public var trigger: TriggerMark?
  /// Why the take ended.
  public var stoppedBy = StopReason.signal
  /// Whether the file can be played, as reading it back has shown.
  public var isPlayable = false
  /// The codec of the pictures.
  public var codec: VideoCodec?
  /// How the pictures are encoded; nil where there is no file.
  public var video: RecordedVideo?
  /// What became of the sound; nil where the take has none.
  public var audio: RecordedAudio?
  /// What went wrong, where something did; the file may be playable all the same.
  public var problem: MediaError?
  /// What the user should know although nothing failed.
  public var warnings: [String] = []

  private enum CodingKeys: String, CodingKey {
    case path = "file"
    case mode, proof, rateCause, duration, ledger, gaps, pauses, intervals, cost, trigger
    case requestedFrameRate = "requestedFps"
    case negotiatedFrameRate = "negotiatedFps"
    case measuredFrameRate = "measuredFps"
    case startupDuration = "startup"
    case stoppedBy, codec, video, audio, warnings
    case isPlayable = "playable"
    case problem = "error"
  }

  /// Makes the report of a take of which nothing is known yet but its rates.
  public init(requestedFrameRate: FrameRate, negotiatedFrameRate: FrameRate) {
    self.requestedFrameRate = requestedFrameRate
    self.negotiatedFrameRate = negotiatedFrameRate
  }
}

extension RecordingReport {
  /// Takes back what was counted as stored and never reached the disk.
  ///
  /// - Parameters:
  ///   - count: The frames that the file holds.
  ///   - times: The times of all frames that were counted, in microseconds from the first.
  mutating func keep(first count: Int64, of times: [Int64]) {
    let lost = ledger.stored - count
    guard lost > 0 else { return }
    ledger.stored = count
    ledger.lostWriter += lost
    if times.indices.contains(Int(count)) {
      duration = MediaTime(microseconds: times[Int(count)])
    }
    intervals = FrameIntervals(microseconds: Array(times.prefix(Int(count))))
    // What was missing among the lost ones is now missing after the last that is left.
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

/// How the pictures of a take are encoded.
public struct RecordedVideo: Hashable, Sendable, Codable {
  /// The codec.
  public var codec: VideoCodec
  /// The profile of H.264 by libx264's name, such as `high`; nil for other codecs.
  public var profile: String?
  /// The level of H.264, such as `4.2`; nil for other codecs.
  public var level: String?
  /// Bits a second over the whole file, to the nearest.
  public var bitRate: Int64
  /// The most bits a second that the encoder was allowed; nil where it had no limit or none was
  /// used.
  public var maximumBitRate: Int64?

  private enum CodingKeys: String, CodingKey {
    case codec, profile, level, bitRate
    case maximumBitRate = "maxBitRate"
  }
}

/// A time in which a take was paused, and its frames left out.
public struct RecordingPause: Hashable, Sendable, Codable {
  /// Where in the file it is.
  public let time: MediaTime
  /// How long it was, from the first frame that was left out to the next that was not; nil where
  /// the take ended before that.
  public private(set) var duration: MediaTime?
  /// When it began, by the driver's clock.
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

/// How far apart stored frames are: what half, 95 and 99 in 100 do not exceed.
public struct FrameIntervals: Hashable, Sendable, Codable {
  /// The median.
  public let p50: Duration
  /// The 95th percentile.
  public let p95: Duration
  /// The 99th percentile.
  public let p99: Duration
  /// The longest.
  public let max: Duration

  /// Measures the times of frames in microseconds; nil for fewer than two frames.
  ///
  /// A percentile is the smallest interval that at least so many in 100 do not exceed.
  public init?(microseconds times: [Int64]) {
    let sorted = zip(times.dropFirst(), times).map { $0 &- $1 }.sorted()
    guard let longest = sorted.last else { return nil }
    func percentile(_ percent: Int) -> Duration {
      .microseconds(sorted[Swift.max(0, (sorted.count * percent + 99) / 100 - 1)])
    }
    (p50, p95, p99) = (percentile(50), percentile(95), percentile(99))
    max = .microseconds(longest)
  }
}
