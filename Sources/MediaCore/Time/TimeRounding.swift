// SPDX-License-Identifier: Apache-2.0

/// The rounding of a time to a whole number of units.
///
/// The six methods of `CMTimeRoundingMethod`. There is no default, so every caller names its
/// rounding.
public enum TimeRounding: Hashable, Sendable, CaseIterable {
  /// To the nearest unit; ties round away from zero.
  case halfAwayFromZero
  /// To the next unit toward zero (truncation).
  case towardZero
  /// To the next unit away from zero.
  case awayFromZero
  /// Toward zero if the new timescale is coarser, away from zero if it is finer. A negative time
  /// that would become zero is rounded away from zero.
  case quickTime
  /// To the next unit up (ceiling).
  case towardPositiveInfinity
  /// To the next unit down (floor).
  case towardNegativeInfinity

  /// Rounds `numerator / denominator` to an integer; `denominator` must be above zero.
  ///
  /// `isFiner` is true for a conversion to a finer timescale; only `quickTime` uses it.
  func quotient(_ numerator: Int128, _ denominator: Int128, isFiner: Bool) -> Int128 {
    let (quotient, remainder): (Int128, Int128)
    if let above = numerator.small, let below = denominator.small {
      (quotient, remainder) = (
        Int128(truncatingIfNeeded: above / below), Int128(truncatingIfNeeded: above % below)
      )
    } else {
      (quotient, remainder) = numerator.quotientAndRemainder(dividingBy: denominator)
    }
    guard remainder != 0 else { return quotient }
    let away: Int128 = numerator < 0 ? -1 : 1
    let roundsAway: Bool
    switch self {
    case .halfAwayFromZero:
      // A remainder of at least half the denominator rounds away from zero. This is
      // `2 * remainder >= denominator`, written without the multiplication, which could overflow.
      roundsAway = remainder.magnitude >= denominator.magnitude - remainder.magnitude
    case .towardZero: roundsAway = false
    case .awayFromZero: roundsAway = true
    case .quickTime: roundsAway = isFiner || (numerator < 0 && quotient == 0)
    case .towardPositiveInfinity: roundsAway = numerator > 0
    case .towardNegativeInfinity: roundsAway = numerator < 0
    }
    // If there is a remainder, the denominator is above 1 and the quotient closer to zero than the
    // numerator. So adding 1 or -1 cannot overflow.
    return roundsAway ? quotient + away : quotient
  }
}
