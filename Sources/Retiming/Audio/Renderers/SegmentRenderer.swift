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

/// A speed as a fraction with a small numerator, as libswresample requires.
struct RationalApproximation: Hashable {
  let numerator: Int64
  let denominator: Int64

  /// Creates the exact fraction if its numerator is small enough.
  ///
  /// Otherwise, creates the closest convergent of the speed's continued fraction whose numerator is
  /// small enough.
  ///
  /// The relative error is at most 1/`largestNumerator`. With an 18-bit numerator the drift is at
  /// most 14 ms per hour.
  ///
  /// - Parameters:
  ///   - speed: The speed, above zero.
  ///   - largestNumerator: The largest numerator, above zero.
  init(nearest speed: Rational, largestNumerator: Int64) {
    // Euclid's algorithm; `last` and `current` are the last two convergents.
    var (above, below) = (speed.numerator, speed.denominator)
    var (last, current): ((Int128, Int128), (Int128, Int128)) = ((0, 1), (1, 0))
    while below != 0 {
      let (quotient, remainder) = above.quotientAndRemainder(dividingBy: below)
      let numerator = quotient.multipliedReportingOverflow(by: current.0)
      let denominator = quotient.multipliedReportingOverflow(by: current.1)
      guard !numerator.overflow, !denominator.overflow,
        numerator.partialValue <= Int128(largestNumerator) - last.0,
        denominator.partialValue <= Int128(Int32.max) - last.1
      else { break }
      (last, current) = (
        current, (numerator.partialValue + last.0, denominator.partialValue + last.1)
      )
      (above, below) = (below, remainder)
    }
    // For a speed below one, the first convergent is 0/1. If no later convergent has a small enough
    // numerator, the numerator is raised to 1, because a speed must be above zero.
    numerator = Int64(max(1, current.0))
    denominator = Int64(max(1, current.1))
  }

  /// Returns the lead: how many output samples before `position` the resampler should start.
  ///
  /// The resampler can only start at a whole source sample. With the returned lead, the start comes
  /// closest to a whole source sample.
  ///
  /// - Parameters:
  ///   - position: The source position of the first wanted output, in source samples.
  ///   - sourceCount: The minimum lead in source samples.
  /// - Returns: The lead in output samples, above zero.
  func lead(to position: Rational, atLeast sourceCount: Int) -> Int64 {
    let least = Int64(sourceCount) * denominator / numerator + 1
    // When the lead grows by `denominator` output samples, the start position has the same
    // fractional part again, so larger leads need not be tried. The tried leads also span at most
    // 16,384 output samples and 16,384 source samples, so that the resampler does not start far too
    // early.
    let choices = max(1, min(denominator, 16_384, 16_384 * denominator / numerator))
    let wanted = position.fractionalPart
    var best = (lead: least, distance: Double.infinity)
    for lead in least..<least + choices {
      let rest = lead * numerator % denominator
      let offset = (wanted - Double(rest) / Double(denominator)).magnitude
      let distance = min(offset, 1 - offset)
      if distance < best.distance - 1e-12 { best = (lead, distance) }
    }
    return best.lead
  }
}

extension Rational {
  /// The fractional part of the number: at least 0 and below 1.
  fileprivate var fractionalPart: Double {
    let rest = numerator % denominator
    return Double(rest < 0 ? rest + denominator : rest) / Double(denominator)
  }
}
