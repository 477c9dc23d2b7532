// SPDX-License-Identifier: Apache-2.0

import BigInt
import OvercrankMediaCore

/// A fraction of integers of unlimited size, the reference for exact results.
///
/// It is reduced only to check whether a result fits in the type under test, because reducing is
/// slow.
struct Fraction: CustomStringConvertible {
  let above: BigInt
  /// The denominator of the fraction, above zero.
  let below: BigInt

  init(_ above: BigInt, _ below: BigInt) {
    self.above = below < 0 ? -above : above
    self.below = below < 0 ? -below : below
  }

  init(_ number: Rational) {
    self.init(BigInt(number.numerator), BigInt(number.denominator))
  }

  init(_ time: MediaTime) { self.init(BigInt(time.value), BigInt(time.timescale)) }

  static func + (left: Fraction, right: Fraction) -> Fraction {
    Fraction(left.above * right.below + right.above * left.below, left.below * right.below)
  }

  static func - (left: Fraction, right: Fraction) -> Fraction {
    Fraction(left.above * right.below - right.above * left.below, left.below * right.below)
  }

  static func * (left: Fraction, right: Fraction) -> Fraction {
    Fraction(left.above * right.above, left.below * right.below)
  }

  static func / (left: Fraction, right: Fraction) -> Fraction {
    Fraction(left.above * right.below, left.below * right.above)
  }

  /// -1, 0 or 1: the sign of the difference.
  func compared(to other: Fraction) -> Int {
    let (left, right) = (above * other.below, other.above * below)
    return left == right ? 0 : left < right ? -1 : 1
  }

  var inLowestTerms: Fraction {
    let shared = above.greatestCommonDivisor(with: below)
    return Fraction(above / shared, below / shared)
  }

  var description: String { "\(above)/\(below)" }

  /// Rounds to a whole number by the definition of each rounding, from the next lower whole number.
  func rounded(_ rounding: TimeRounding, isFiner: Bool) -> BigInt {
    let (toward, remainder) = above.quotientAndRemainder(dividingBy: below)
    if remainder == 0 { return toward }
    let isNegative = above < 0
    let floor = isNegative ? toward - 1 : toward
    let ceiling = floor + 1
    switch rounding {
    case .towardNegativeInfinity: return floor
    case .towardPositiveInfinity: return ceiling
    case .towardZero: return isNegative ? ceiling : floor
    case .awayFromZero: return isNegative ? floor : ceiling
    case .halfAwayFromZero:
      let twice = (above - floor * below) * 2
      if twice == below { return isNegative ? floor : ceiling }
      return twice < below ? floor : ceiling
    case .quickTime:
      if isFiner { return isNegative ? floor : ceiling }
      if isNegative { return ceiling == 0 ? floor : ceiling }
      return floor
    }
  }
}

/// Describes how a result is wrong, or returns nil.
///
/// A correct result is equal to the expected one and in lowest terms, or it is an overflow that
/// cannot be avoided.
func complaint(
  _ result: Result<Rational, MediaError>, expected: Fraction, mayOverflow: Bool = false
) -> String? {
  switch result {
  case .success(let number):
    if Fraction(number).compared(to: expected) != 0 { return "\(number) is not \(expected)" }
    return isInLowestTerms(number) ? nil : "\(number) is not in lowest terms"
  case .failure(let error):
    guard error.code == .overflow else { return "\(error)" }
    if mayOverflow { return nil }
    let exact = expected.inLowestTerms
    let fits = exact.above.fits(Int128.self) && exact.below.fits(Int128.self)
    return fits ? "\(exact) fits, but \(error)" : nil
  }
}

/// Checks a result, which is the invalid number in case of an overflow.
func complaint(
  _ number: Rational, expected: Fraction, mayOverflow: Bool = false
) -> String? {
  let overflow = MediaError(.overflow, "it is invalid")
  return complaint(
    number.isValid ? .success(number) : .failure(overflow), expected: expected,
    mayOverflow: mayOverflow)
}

/// Checks a time, which is in lowest terms only if it would overflow otherwise.
func complaint(_ result: Result<MediaTime, MediaError>, expected: Fraction) -> String? {
  switch result {
  case .success(let time):
    return Fraction(time).compared(to: expected) == 0 ? nil : "\(time) is not \(expected)"
  case .failure(let error):
    guard error.code == .overflow else { return "\(error)" }
    let exact = expected.inLowestTerms
    let fits = exact.above.fits(Int64.self) && exact.below.fits(Int32.self)
    return fits ? "\(exact) fits, but \(error)" : nil
  }
}

extension BigInt {
  /// Whether a number of this type can be equal to the fraction.
  ///
  /// The bounds are compared, because `Int128(exactly:)` returns a wrong number instead of nil for
  /// a ``BigInt`` between -2^128 and -2^127 (BigInt 6.0.1, Swift 6.3).
  func fits<Number: FixedWidthInteger>(_ type: Number.Type) -> Bool {
    BigInt(Number.min) <= self && self <= BigInt(Number.max)
  }
}

private func isInLowestTerms(_ number: Rational) -> Bool {
  var (a, b) = (number.numerator.magnitude, number.denominator.magnitude)
  while b != 0 { (a, b) = (b, a % b) }
  return a == 1 && number.denominator > 0
}
