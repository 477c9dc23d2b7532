// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// A renderer of one piece's samples, in order.
protocol SegmentRenderer {
  /// Returns the next `count` samples, or fewer if the renderer has no more.
  mutating func next(_ count: Int, _ read: SampleReader) throws -> Planes
}

/// A renderer that copies source samples unchanged.
struct CopyRenderer: SegmentRenderer {
  /// The next source sample to copy.
  var position: Int64

  mutating func next(_ count: Int, _ read: SampleReader) throws -> Planes {
    defer { position += Int64(count) }
    return try read(position, count)
  }
}

/// A renderer of silence.
struct SilentRenderer: SegmentRenderer {
  let channelCount: Int

  func next(_ count: Int, _ read: SampleReader) -> Planes {
    .silence(count, channelCount: channelCount)
  }
}

/// A renderer that changes the pitch with the speed, using libswresample.
final class VarispeedRenderer: SegmentRenderer {
  private var resampler: Resampler
  private var queue: SampleQueue
  private var position: Int64
  private let blockLength: Int

  /// Creates a renderer whose first sample is at a source position, in samples.
  ///
  /// The resampler can only start at a whole source sample. So it starts earlier, at a source
  /// sample that lies a whole number of output samples before the position, and the surplus output
  /// is dropped. Returns nil if each possible start misses a whole source sample by more than 1e-6
  /// output samples, or if libswresample cannot represent the speed.
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
    // A start that is off by 1e-6 output samples causes an error below -110 dB, even for a tone
    // near the band limit.
    guard distance.doubleValue.magnitude <= speed.fraction.doubleValue / 1_000_000 else {
      return nil
    }
    self.position = first
    queue = SampleQueue(channelCount: channelCount, dropping: lead)
    // A block yields about 4096 output samples at every speed, so that slow motion needs no more
    // memory.
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
