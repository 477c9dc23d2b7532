// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// A trigger by loud audio: the first sample above a threshold after a quiet period.
public struct AudioTrigger: Hashable, Sendable {
  /// The threshold in dBFS.
  ///
  /// 0 dBFS is full scale, the greatest possible sample value.
  public var threshold: Double
  /// The time without samples above the threshold that must precede a trigger.
  public var quietPeriod: MediaTime

  /// Creates the settings of an audio trigger.
  ///
  /// Continuous loud audio gives one trigger.
  public init(threshold: Double, quietPeriod: MediaTime = MediaTime(seconds: 1)) {
    self.threshold = threshold
    self.quietPeriod = quietPeriod
  }

  /// Detects audio triggers in one stream of audio blocks.
  struct Detector {
    private let level: Float
    private let quietPeriod: MediaTime
    /// The index of the last sample above the threshold.
    ///
    /// Nil before the first such sample, which is a trigger even without a quiet period before it.
    private var lastLoud: Int64?

    init(_ settings: AudioTrigger) {
      level = Float(pow(10, min(0, settings.threshold) / 20))
      quietPeriod = settings.quietPeriod
    }

    /// The times of the triggers in a block, in microseconds of the capture clock, rounded down.
    ///
    /// Gaps between blocks do not count towards the quiet period.
    mutating func hear(_ block: AudioSampleBuffer) -> [Int64] {
      let channels = (0..<block.format.channelCount).map { block.samples(ofChannel: $0) }
      let rate = Int64(max(1, block.format.sampleRate))
      let quiet =
        (try? quietPeriod.converted(to: Int32(clamping: rate), rounding: .towardPositiveInfinity))?
        .value ?? .max
      if let gap = block.gapBefore { lastLoud = lastLoud.map { $0 + gap.sampleCount } }
      var times: [Int64] = []
      for sample in 0..<block.sampleCount
      where channels.contains(where: { abs($0[sample]) >= level }) {
        let position = block.position + Int64(sample)
        if lastLoud.map({ position - $0 > quiet }) ?? true {
          times.append(Self.microseconds(of: sample, in: block, rate))
        }
        lastLoud = position
      }
      return times
    }

    private static func microseconds(
      of sample: Int, in block: AudioSampleBuffer, _ rate: Int64
    ) -> Int64 {
      let start =
        (try? block.presentationTimeStamp.converted(
          to: 1_000_000, rounding: .towardNegativeInfinity))?.value ?? 0
      return start + Int64(sample) * 1_000_000 / rate
    }
  }
}
