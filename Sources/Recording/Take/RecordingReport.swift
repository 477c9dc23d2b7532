// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
public import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore

/// What a finished take is, and what became of each of its frames.
public struct RecordingReport: Sendable {
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
  /// How long the file plays, in nanoseconds.
  public var durationNanoseconds: Int64 = 0
  /// From switching the stream on to the first period that the driver claims, in nanoseconds.
  public var startupNanoseconds: Int64?
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
      durationNanoseconds = times[Int(count)].saturatingMultiplied(by: 1_000)
    }
    let end = durationNanoseconds
    intervals = FrameIntervals(microseconds: Array(times.prefix(Int(count))))
    // What was missing among the lost ones is now missing after the last that is left.
    var after = FrameGap(afterIndex: count - 1, count: lost, nanoseconds: end, cause: .lostWriter)
    var kept: [FrameGap] = []
    for gap in gaps {
      if gap.cause == .lostWriter {
        after.count += gap.count
      } else {
        kept.append(
          FrameGap(
            afterIndex: min(gap.afterIndex, count - 1), count: gap.count,
            nanoseconds: gap.nanoseconds, cause: gap.cause))
      }
    }
    gaps = kept + [after]
  }
}

/// How the pictures of a take are encoded.
public struct RecordedVideo: Hashable, Sendable {
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
}

/// A time in which a take was paused, and its frames left out.
public struct RecordingPause: Hashable, Sendable {
  /// Where in the file it is, in nanoseconds from the first frame.
  public let nanoseconds: Int64
  /// How long it was, from the first frame that was left out to the next that was not; nil where
  /// the take ended before that.
  public private(set) var durationNanoseconds: Int64?
  private let driverMicroseconds: Int64

  init(nanoseconds: Int64, driverMicroseconds: Int64) {
    self.nanoseconds = nanoseconds
    self.driverMicroseconds = driverMicroseconds
  }

  mutating func end(atMicroseconds time: Int64) {
    durationNanoseconds = (time &- driverMicroseconds).saturatingMultiplied(by: 1_000)
  }
}

/// How far apart stored frames are, in nanoseconds: what half, 95 and 99 in 100 do not exceed.
public struct FrameIntervals: Hashable, Sendable {
  /// The median.
  public let p50: Int64
  /// The 95th percentile.
  public let p95: Int64
  /// The 99th percentile.
  public let p99: Int64
  /// The longest.
  public let max: Int64

  /// Measures the times of frames in microseconds; nil for fewer than two frames.
  ///
  /// A percentile is the smallest interval that at least so many in 100 do not exceed.
  public init?(microseconds times: [Int64]) {
    let sorted = zip(times.dropFirst(), times).map { ($0 &- $1) &* 1_000 }.sorted()
    guard let longest = sorted.last else { return nil }
    func percentile(_ percent: Int) -> Int64 {
      sorted[Swift.max(0, (sorted.count * percent + 99) / 100 - 1)]
    }
    (p50, p95, p99, max) = (percentile(50), percentile(95), percentile(99), longest)
  }
}
