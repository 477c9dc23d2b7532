// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankCapture
import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// Which sounds give triggers: the first sample that is loud enough, after a quiet period.
public struct AudioTrigger: Hashable, Sendable {
  /// How large a sample must be, in dB of full scale: 0 is the largest there is.
  public var threshold: Double
  /// How long every sample must have been smaller before the next trigger.
  public var quietPeriod: MediaTime

  /// Makes settings; a sound that goes on for longer than the quiet period is one trigger.
  public init(threshold: Double, quietPeriod: MediaTime = MediaTime(seconds: 1)) {
    self.threshold = threshold
    self.quietPeriod = quietPeriod
  }

  /// Listens to one stream of blocks.
  struct Detector {
    private let level: Float
    private let quietPeriod: MediaTime
    /// The number of the last loud sample; nil before the first, when every sound is a trigger.
    private var lastLoud: Int64?

    init(_ settings: AudioTrigger) {
      level = Float(pow(10, min(0, settings.threshold) / 20))
      quietPeriod = settings.quietPeriod
    }

    /// The times of the triggers in a block, in microseconds of the capture clock, rounded down.
    ///
    /// What is missing between blocks counts as neither loud nor quiet: it is left out.
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
