// SPDX-License-Identifier: Apache-2.0

/// The rounding of a time to a whole number of units.
///
/// The six methods of `CMTimeRoundingMethod`. No default exists: every caller names its rounding.
public enum TimeRounding: Hashable, Sendable, CaseIterable {
  /// To the nearest unit; ties round away from zero.
  case halfAwayFromZero
  /// To the nearest unit that is not farther from zero (truncation).
  case towardZero
  /// To the nearest unit that is not nearer to zero.
  case awayFromZero
  /// Toward zero when converting to a coarser timescale, away from zero to a finer one. A negative
  /// time never becomes zero.
  case quickTime
  /// To the nearest unit that is not less (ceiling).
  case towardPositiveInfinity
  /// To the nearest unit that is not greater (floor).
  case towardNegativeInfinity

  /// Rounds `numerator / denominator` to an integer; `denominator` must be above zero.
  ///
  /// `isFiner` is true for a conversion to a finer timescale; only `quickTime` uses it.
  func quotient(_ numerator: Int128, _ denominator: Int128, isFiner: Bool) -> Int128 {
    let (quotient, remainder) = numerator.quotientAndRemainder(dividingBy: denominator)
    guard remainder != 0 else { return quotient }
    let away: Int128 = numerator < 0 ? -1 : 1
    let roundsAway: Bool
    switch self {
    case .halfAwayFromZero:
      // Doubling the remainder could overflow; subtracting it from the denominator cannot.
      roundsAway = remainder.magnitude >= denominator.magnitude - remainder.magnitude
    case .towardZero: roundsAway = false
    case .awayFromZero: roundsAway = true
    case .quickTime: roundsAway = isFiner || (numerator < 0 && quotient == 0)
    case .towardPositiveInfinity: roundsAway = numerator > 0
    case .towardNegativeInfinity: roundsAway = numerator < 0
    }
    // A remainder implies denominator > 1, so |quotient| < |numerator| and the sum cannot overflow.
    return roundsAway ? quotient + away : quotient
  }
}
