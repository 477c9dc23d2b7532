// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore

/// A speed as libswresample can take it: two whole numbers of which the upper one is small.
struct RationalApproximation: Hashable {
  let numerator: Int64
  let denominator: Int64

  /// The fraction itself when its upper number is small enough, as those that people type are;
  /// else the last of its convergents that is.
  ///
  /// What it gives is then within one part in `largestNumerator` of the number: with 18 bits,
  /// 14 ms in an hour at the worst, which takes a speed such as 1000001/1000000.
  ///
  /// - Parameters:
  ///   - speed: Above zero.
  ///   - largestNumerator: Above zero.
  init(nearest speed: Rational, largestNumerator: Int64) {
    // Euclid on the fraction; (p, q) are the last two convergents.
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
    // The zeroth convergent of a speed below one is zero, and before it comes one over zero.
    numerator = Int64(max(1, current.0))
    denominator = Int64(max(1, current.1))
  }

  /// How many output samples ahead of `position` to start, so that the source's position there is
  /// as near to a whole sample as it can be.
  ///
  /// - Parameters:
  ///   - position: In source samples.
  ///   - sourceCount: The source samples to start ahead, at the least.
  /// - Returns: Above zero.
  func lead(to position: Rational, atLeast sourceCount: Int) -> Int64 {
    let least = Int64(sourceCount) * denominator / numerator + 1
    // Looking further than all fractions there are is of no use, nor is reading far back.
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
  /// What lies above the next lower whole number, from 0 up to 1.
  fileprivate var fractionalPart: Double {
    let rest = numerator % denominator
    return Double(rest < 0 ? rest + denominator : rest) / Double(denominator)
  }
}
