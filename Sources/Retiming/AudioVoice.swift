// SPDX-License-Identifier: Apache-2.0

import LibAV
import MediaTiming

/// What makes the samples of one piece of the output, from the first to the last.
protocol AudioVoice {
  /// Gives the next samples: `count` of them, or fewer when the engine has no more to give.
  mutating func next(_ count: Int, _ read: SampleReader) throws -> Planes
}

/// The source's own samples, bit for bit.
struct CopyVoice: AudioVoice {
  /// The sample of the source that comes next.
  var position: Int64

  mutating func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    defer { position += Int64(count) }
    return try read(position, count)
  }
}

/// Silence.
struct SilentVoice: AudioVoice {
  let channelCount: Int

  func next(_ count: Int, _ read: SampleReader) -> Planes {
    .silence(count, channelCount: channelCount)
  }
}

/// The source at another speed and its own pitch, by Rubber Band.
final class SpectralVoice: AudioVoice {
  private var stretcher: Stretcher
  private var queue: SampleQueue
  private var position: Int64
  private let patience: Int

  /// Makes a voice whose first sample is the source's at `position`, a number of samples.
  ///
  /// The engine starts a tenth of a second earlier, on real samples: its windows are 43 ms to
  /// either side, and what it gives of an input shorter than them is not usable.
  init(
    position: Rational, speed: Speed, sampleRate: Int, channelCount: Int
  ) throws(RetimingError) {
    let stretch = try exactly("the stretch") { () throws(TimingError) in try speed.stretch() }
    let lead = Int64(sampleRate / 10)
    let nearest = try position.wholeNumber(.towardNegativeInfinity, of: "the sample \(position)")
    let (start, overflow) = nearest.subtractingReportingOverflow(lead)
    guard !overflow else { throw RetimingError(.notExact, "the sample \(position) is too far") }
    self.position = start
    let unwanted = try exactly("the lead of the sample \(position)") { () throws(TimingError) in
      try position.subtracting(Rational(start)).multiplied(by: stretch)
    }
    queue = SampleQueue(
      channelCount: channelCount,
      dropping: try unwanted.wholeNumber(.halfAwayFromZero, of: "the lead"))
    stretcher = try Stretcher(
      sampleRate: sampleRate, channelCount: channelCount, stretch: stretch.doubleValue)
    // R3's latency is a window of the source and one of the output, each 4096 samples at 48 kHz
    // (measured: 6034 source samples at speed 2, 65536 at 32); and windows grow with the rate.
    patience = 4 * 4096 * max(1, sampleRate / 24_000) * Int(max(1, speed.fraction.doubleValue) + 1)
  }

  func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    var fruitless = 0
    while queue.count < count, fruitless < patience {
      let before = queue.count
      let input = try read(position, stretcher.blockLength)
      position += Int64(stretcher.blockLength)
      queue.append(Self.decoded(stretcher.process(Self.encoded(input))))
      fruitless = queue.count > before ? 0 : fruitless + stretcher.blockLength
    }
    return queue.take(count)
  }

  /// Two channels as their mean and half their difference, which the engine keeps together:
  /// as left and right it lets their phases drift apart (correlation .84 becomes .47 at 1/8).
  private static func encoded(_ planes: Planes) -> Planes {
    guard planes.count == 2 else { return planes }
    let pairs = zip(planes[0], planes[1])
    return [pairs.map { ($0 + $1) / 2 }, pairs.map { ($0 - $1) / 2 }]
  }

  private static func decoded(_ planes: Planes) -> Planes {
    guard planes.count == 2 else { return planes }
    let pairs = zip(planes[0], planes[1])
    return [pairs.map { $0 + $1 }, pairs.map { $0 - $1 }]
  }
}

/// The source at another speed and pitch, by libswresample.
final class VarispeedVoice: AudioVoice {
  private var resampler: Resampler
  private var queue: SampleQueue
  private var position: Int64
  private let blockLength: Int

  /// Makes a voice whose first sample is the source's at `position`, a number of samples.
  ///
  /// The resampler starts earlier, on a whole sample of the source from which the wanted position
  /// is a whole number of output samples away, or as nearly as can be: half an output sample at
  /// most, and exactly when `position` is whole.
  init(position: Rational, speed: Speed, channelCount: Int) throws(RetimingError) {
    let step = SmallFraction(
      nearest: speed.fraction, largestNumerator: Int64(Resampler.largestInputRate))
    do {
      resampler = try Resampler(
        inputRate: Int32(step.numerator), outputRate: Int32(step.denominator),
        channelCount: channelCount)
    } catch { throw RetimingError(.engine, error.description) }
    let lead = step.lead(to: position, atLeast: resampler.filterLength)
    let start = try exactly("the lead of the sample \(position)") { () throws(TimingError) in
      try position.subtracting(
        Rational(Int128(lead) * Int128(step.numerator), Int128(step.denominator)))
    }
    self.position = try start.wholeNumber(.halfAwayFromZero, of: "the sample \(position)")
    queue = SampleQueue(channelCount: channelCount, dropping: lead)
    // Enough for some 4096 samples of output, so that memory stays bounded at every speed.
    blockLength = max(128, min(16_384, Int(4096 * speed.fraction.doubleValue)))
  }

  func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    var fruitless = 0
    while queue.count < count, fruitless < 4 * resampler.filterLength + 4 * blockLength {
      let before = queue.count
      let input = try read(position, blockLength)
      position += Int64(blockLength)
      queue.append(try resampler.convert(input))
      fruitless = queue.count > before ? 0 : fruitless + blockLength
    }
    return queue.take(count)
  }
}
