// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

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
