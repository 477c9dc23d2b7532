// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// What makes the samples of one piece of the output, from the first to the last.
protocol SegmentRenderer {
  /// Gives the next samples: `count` of them, or fewer when the engine has no more to give.
  mutating func next(_ count: Int, _ read: SampleReader) throws -> Planes
}

/// The source's own samples, bit for bit.
struct CopyRenderer: SegmentRenderer {
  /// The sample of the source that comes next.
  var position: Int64

  mutating func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    defer { position += Int64(count) }
    return try read(position, count)
  }
}

/// Silence.
struct SilentRenderer: SegmentRenderer {
  let channelCount: Int

  func next(_ count: Int, _ read: SampleReader) -> Planes {
    .silence(count, channelCount: channelCount)
  }
}

/// The source at another speed and pitch, by libswresample.
final class VarispeedRenderer: SegmentRenderer {
  private var resampler: Resampler
  private var queue: SampleQueue
  private var position: Int64
  private let blockLength: Int

  /// Makes a voice whose first sample is the source's at `position`, a number of samples.
  ///
  /// The resampler starts earlier, on a whole sample of the source from which the wanted position
  /// is a whole number of output samples away; nil where there is none, to a millionth of an
  /// output sample, or where the resampler cannot take the speed as it is.
  init?(position: Rational, speed: Speed, channelCount: Int) throws(MediaError) {
    let step = RationalApproximation(
      nearest: speed.fraction, largestNumerator: Int64(Resampler.largestInputRate))
    guard speed.fraction == Rational(Int128(step.numerator), over: Int128(step.denominator))
    else { return nil }
    do {
      resampler = try Resampler(
        inputRate: Int32(step.numerator), outputRate: Int32(step.denominator),
        channelCount: channelCount)
    } catch { throw MediaError(.engine, error.description) }
    let lead = step.lead(to: position, atLeast: resampler.filterLength)
    let start = try
      (position - Rational(Int128(lead) * Int128(step.numerator), over: Int128(step.denominator)))
      .exact("the lead of the sample \(position)")
    let first = try start.wholeNumber(.halfAwayFromZero, of: "the sample \(position)")
    let distance = try (start - Rational(first)).exact("the lead of the sample \(position)")
    // A tone near the end of the band that is late by more is off by more than 110 dB below it.
    guard distance.doubleValue.magnitude <= speed.fraction.doubleValue / 1_000_000 else {
      return nil
    }
    self.position = first
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
