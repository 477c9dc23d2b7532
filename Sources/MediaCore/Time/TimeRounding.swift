// SPDX-License-Identifier: Apache-2.0

/// How a time that falls between two whole units becomes one of them.
///
/// The six methods of `CMTimeRoundingMethod`. There is no default: every place that rounds
/// names how.
public enum TimeRounding: Hashable, Sendable, CaseIterable {
  /// To the nearest unit; exactly between two, to the one farther from zero.
  case halfAwayFromZero
  /// To the nearest unit that is not farther from zero.
  case towardZero
  /// To the nearest unit that is not nearer to zero.
  case awayFromZero
  /// Toward zero into a coarser timescale, away from zero into a finer one; a negative time
  /// never becomes zero.
  case quickTime
  /// To the nearest unit that is not less.
  case towardPositiveInfinity
  /// To the nearest unit that is not greater.
  case towardNegativeInfinity

  /// The whole number for `numerator / denominator`, where `denominator` is above zero.
  ///
  /// `isFiner` says whether a conversion goes to a finer scale, which only `quickTime` asks.
  func quotient(_ numerator: Int128, _ denominator: Int128, isFiner: Bool) -> Int128 {
    let (quotient, remainder) = numerator.quotientAndRemainder(dividingBy: denominator)
    guard remainder != 0 else { return quotient }
    let away: Int128 = numerator < 0 ? -1 : 1
    let roundsAway: Bool
    switch self {
    case .halfAwayFromZero:
      // Twice the remainder could overflow; the other half of the unit cannot.
      roundsAway = remainder.magnitude >= denominator.magnitude - remainder.magnitude
    case .towardZero: roundsAway = false
    case .awayFromZero: roundsAway = true
    case .quickTime: roundsAway = isFiner || (numerator < 0 && quotient == 0)
    case .towardPositiveInfinity: roundsAway = numerator > 0
    case .towardNegativeInfinity: roundsAway = numerator < 0
    }
    // |quotient| < |numerator| here (there is a remainder, so denominator > 1): no overflow.
    return roundsAway ? quotient + away : quotient
  }
}
