// SPDX-License-Identifier: Apache-2.0

/// An exact fraction in lowest terms, with a 128-bit numerator and denominator.
///
/// The operators never round and never trap. A result that does not fit is ``invalid``, as with
/// `CMTime`, and so is every result computed from it. So it suffices to check the last result of a
/// computation. The initializers of times, rates and speeds do this.
public struct Rational: Hashable, Sendable {
  /// The numerator, with the sign of the fraction.
  public let numerator: Int128
  /// The denominator: above zero, or zero for ``invalid``.
  public let denominator: Int128

  /// Zero.
  public static let zero = Rational(0)
  /// One.
  public static let one = Rational(1)
  /// The result of an overflow or a division by zero.
  ///
  /// It equals itself and is greater than every other number.
  public static let invalid = Rational(unchecked: 0, 0)

  /// Makes a whole number.
  public init(_ whole: Int64) { self.init(unchecked: Int128(whole), 1) }

  /// Makes a whole number.
  public init(_ whole: Int128) { self.init(unchecked: whole, 1) }

  /// Makes a fraction and reduces it; ``invalid`` for a denominator of zero or below.
  public init(_ numerator: Int128, over denominator: Int128) {
    self = denominator > 0 ? Rational(reducing: numerator, denominator) : .invalid
  }

  /// Stores a fraction that is already in lowest terms.
  private init(unchecked numerator: Int128, _ denominator: Int128) {
    (self.numerator, self.denominator) = (numerator, denominator)
  }

  /// Makes a fraction and reduces it.
  ///
  /// The denominator must be above zero.
  init(reducing numerator: Int128, _ denominator: Int128) {
    let divisor = greatestCommonDivisor(numerator.magnitude, denominator.magnitude)
    guard divisor != 1 else {
      self.init(unchecked: numerator, denominator)
      return
    }
    if let above = numerator.small, let below = denominator.small, let divisor = divisor.small {
      // Neither is -2^63 with a divisor of -1, because the divisor is above zero.
      self.init(
        unchecked: Int128(truncatingIfNeeded: above / divisor),
        Int128(truncatingIfNeeded: below / divisor))
      return
    }
    // `Int128(divisor)` cannot trap: the divisor is at most the denominator, which is an `Int128`.
    self.init(unchecked: numerator / Int128(divisor), denominator / Int128(divisor))
  }

  /// True if the fraction is a number, false if it is ``invalid``.
  public var isValid: Bool { denominator != 0 }

  /// The absolute value; ``invalid`` for a numerator of -2^127.
  public var magnitude: Rational { self < .zero ? -self : self }

  /// Returns the number as an integer, rounded as the caller names.
  ///
  /// Rounding to whole numbers counts as a change to a coarser timescale. So `quickTime` rounds
  /// toward zero here, except for a negative number that would become zero.
  ///
  /// - Throws: `MediaError` with `.overflow` for ``invalid``.
  public func rounded(_ rounding: TimeRounding) throws(MediaError) -> Int128 {
    let number = try checked("a number that is rounded")
    return rounding.quotient(number.numerator, number.denominator, isFiner: false)
  }

  /// An approximation for display and signal processing; never use it for decisions.
  ///
  /// NaN for ``invalid``.
  public var doubleValue: Double { Double(numerator) / Double(denominator) }
}

// MARK: Arithmetic

extension Rational {
  /// The exact sum.
  public static func + (left: Rational, right: Rational) -> Rational {
    left.combined(with: right, subtracting: false)
  }

  /// The exact difference.
  public static func - (left: Rational, right: Rational) -> Rational {
    left.combined(with: right, subtracting: true)
  }

  /// The exact product.
  public static func * (left: Rational, right: Rational) -> Rational {
    guard left.isValid, right.isValid else { return .invalid }
    return product(
      isNegative: (left.numerator < 0) != (right.numerator < 0),
      left.numerator.magnitude, right.numerator.magnitude,
      over: left.denominator.magnitude, right.denominator.magnitude)
  }

  /// The exact quotient; ``invalid`` for a division by zero.
  public static func / (left: Rational, right: Rational) -> Rational {
    guard left.isValid, right.isValid, right.numerator != 0 else { return .invalid }
    return product(
      isNegative: (left.numerator < 0) != (right.numerator < 0),
      left.numerator.magnitude, right.denominator.magnitude,
      over: left.denominator.magnitude, right.numerator.magnitude)
  }

  /// The negated number; ``invalid`` for a numerator of -2^127.
  public static prefix func - (number: Rational) -> Rational {
    guard number.numerator != .min else { return .invalid }
    return Rational(unchecked: -number.numerator, number.denominator)
  }

  /// Adds exactly.
  public static func += (left: inout Rational, right: Rational) { left = left + right }

  /// Subtracts exactly.
  public static func -= (left: inout Rational, right: Rational) { left = left - right }
}

extension Rational: ExpressibleByIntegerLiteral {
  /// Makes a whole number.
  public init(integerLiteral whole: Int64) { self.init(whole) }
}

// MARK: Checking

extension Rational {
  /// Returns the number; `what` names the number in the error message.
  ///
  /// - Throws: `MediaError` with `.overflow` for ``invalid``.
  package func checked(_ what: @autoclosure () -> String) throws(MediaError) -> Rational {
    guard isValid else { throw .overflow(what()) }
    return self
  }

  /// The number; nil for ``invalid``.
  package var ifValid: Rational? { isValid ? self : nil }
}

extension Rational: Comparable {
  /// Compares exactly, by 256-bit cross multiplication; ``invalid`` is the greatest.
  public static func < (left: Rational, right: Rational) -> Bool {
    guard left.isValid, right.isValid else { return left.isValid && !right.isValid }
    if left.isSmall, right.isSmall {
      // Products of 64-bit numbers fit 128 bits.
      return left.numerator &* right.denominator < right.numerator &* left.denominator
    }
    let a = left.numerator.multipliedFullWidth(by: right.denominator)
    let b = right.numerator.multipliedFullWidth(by: left.denominator)
    return a.high == b.high ? a.low < b.low : a.high < b.high
  }
}

extension Rational: CustomStringConvertible {
  /// The fraction as `"1/8"`, a whole number as `"240/1"`, and ``invalid`` as `"invalid"`.
  public var description: String { isValid ? "\(numerator)/\(denominator)" : "invalid" }
}

extension Rational {
  /// Returns `(a / c) * (b / d)`; both fractions must be in lowest terms.
  private static func product(
    isNegative: Bool, _ a: UInt128, _ b: UInt128, over c: UInt128, _ d: UInt128
  ) -> Rational {
    guard a != 0, b != 0 else { return .zero }
    // Common divisors are removed before the multiplication, so the product is in lowest terms. If
    // it overflows, the result really does not fit.
    let (first, second) = (greatestCommonDivisor(a, d), greatestCommonDivisor(b, c))
    let above = divided(a, first).multipliedReportingOverflow(by: divided(b, second))
    let below = divided(c, second).multipliedReportingOverflow(by: divided(d, first))
    guard !above.overflow, !below.overflow,
      let numerator = Int128(isNegative: isNegative, magnitude: above.partialValue),
      let denominator = Int128(exactly: below.partialValue)
    else { return .invalid }
    return Rational(unchecked: numerator, denominator)
  }

  /// Divides exactly; most divisors are 1, and a division of 128 bits is slow.
  private static func divided(_ number: UInt128, _ divisor: UInt128) -> UInt128 {
    divisor == 1 ? number : number / divisor
  }

  /// Returns the sum or the difference of two fractions.
  private func combined(with other: Rational, subtracting: Bool) -> Rational {
    guard isValid, other.isValid else { return .invalid }
    if isSmall, other.isSmall {
      // The sum of two products of 64-bit numbers fits 128 bits.
      let (left, right) = (numerator &* other.denominator, other.numerator &* denominator)
      return Rational(
        reducing: subtracting ? left &- right : left &+ right, denominator &* other.denominator)
    }
    let shared = Int128(
      greatestCommonDivisor(denominator.magnitude, other.denominator.magnitude))
    let (scale, otherScale) = (other.denominator / shared, denominator / shared)
    let left = numerator.multipliedReportingOverflow(by: scale)
    let right = other.numerator.multipliedReportingOverflow(by: otherScale)
    let above =
      subtracting
      ? left.partialValue.subtractingReportingOverflow(right.partialValue)
      : left.partialValue.addingReportingOverflow(right.partialValue)
    let below = denominator.multipliedReportingOverflow(by: scale)
    if left.overflow || right.overflow || above.overflow || below.overflow {
      return widelyCombined(with: other, subtracting: subtracting, shared: shared)
    }
    return Rational(reducing: above.partialValue, below.partialValue)
  }

  /// Computes the sum or the difference in 256 bits.
  ///
  /// The result may fit 128 bits after it is reduced to lowest terms, even if the sum does not.
  ///
  /// Algorithm: Knuth, The Art of Computer Programming, volume 2, section 4.5.1.
  private func widelyCombined(
    with other: Rational, subtracting: Bool, shared: Int128
  ) -> Rational {
    // Each product is below 2^254, so the signed sum of two products fits 256 bits.
    let left = numerator.multipliedFullWidth(by: other.denominator / shared)
    let right = other.numerator.multipliedFullWidth(by: denominator / shared)
    var high: Int128
    var low: UInt128
    if subtracting {
      let (difference, borrow) = left.low.subtractingReportingOverflow(right.low)
      (high, low) = (left.high - right.high - (borrow ? 1 : 0), difference)
    } else {
      let (sum, carry) = left.low.addingReportingOverflow(right.low)
      (high, low) = (left.high + right.high + (carry ? 1 : 0), sum)
    }
    let isNegative = high < 0
    if isNegative {
      low = ~low &+ 1
      high = low == 0 ? -high : ~high
    }
    // Every common divisor of the sum and its denominator divides the GCD of the two original
    // denominators (Knuth 4.5.1). So it suffices to reduce the sum by its common divisor with this
    // GCD.
    let shared = shared.magnitude
    let rest = shared.dividingFullWidth((high.magnitude % shared, low)).remainder
    let divisor = greatestCommonDivisor(rest, shared)
    guard high.magnitude < divisor else { return .invalid }
    let above = divisor.dividingFullWidth((high.magnitude, low)).quotient
    let below = (denominator.magnitude / shared).multipliedReportingOverflow(
      by: other.denominator.magnitude / divisor)
    guard !below.overflow,
      let numerator = Int128(isNegative: isNegative, magnitude: above),
      let denominator = Int128(exactly: below.partialValue)
    else { return .invalid }
    return Rational(reducing: numerator, denominator)
  }

  /// Whether both terms fit 64 bits, as they mostly do.
  fileprivate var isSmall: Bool { numerator.small != nil && denominator.small != nil }
}

extension FixedWidthInteger {
  /// The number with 64 bits; nil if it does not fit.
  ///
  /// `Int64(exactly:)` of a 128-bit number is slow.
  @inline(__always)
  var small: Int64? {
    let number = Int64(truncatingIfNeeded: self)
    return Self(truncatingIfNeeded: number) == self && (Self.isSigned || number >= 0)
      ? number : nil
  }
}

extension Int128 {
  /// Makes the number from its sign and magnitude; nil if it does not fit.
  fileprivate init?(isNegative: Bool, magnitude: UInt128) {
    guard magnitude <= (isNegative ? Int128.min : Int128.max).magnitude else { return nil }
    self.init(truncatingIfNeeded: isNegative ? ~magnitude &+ 1 : magnitude)
  }
}

/// Returns the greatest common divisor by Euclid's algorithm; zero only if both numbers are zero.
package func greatestCommonDivisor(_ first: UInt128, _ second: UInt128) -> UInt128 {
  var (a, b) = (first, second)
  while b != 0 {
    if let small = a.small, let other = b.small {
      // A division of 64 bits is one instruction, one of 128 bits a call.
      var (a, b) = (small.magnitude, other.magnitude)
      while b != 0 { (a, b) = (b, a % b) }
      return UInt128(truncatingIfNeeded: a)
    }
    (a, b) = (b, a % b)
  }
  return a
}

/// Runs an exact computation and returns its result.
///
/// If the computation throws because a number does not fit, the error thrown is `.notExact` with
/// `what` in its message.
package func exactly<Value>(
  _ what: @autoclosure () -> String, _ arithmetic: () throws(MediaError) -> Value
) throws(MediaError) -> Value {
  do { return try arithmetic() } catch {
    guard error.code.isArithmetic else { throw error }
    throw .notExact(what(), error.message)
  }
}

extension Rational {
  /// Returns the number; `what` names the number in the error message.
  ///
  /// - Throws: `MediaError` with `.notExact` for an invalid number.
  package func exact(_ what: @autoclosure () -> String) throws(MediaError) -> Rational {
    guard isValid else {
      throw .notExact(what(), "it exceeds the range of exact times")
    }
    return self
  }

  /// Returns the number rounded to an integer.
  ///
  /// `what` names the number in the error message.
  ///
  /// - Throws: `MediaError` with `.notExact` when the result does not fit 64 bits.
  package func wholeNumber(
    _ rounding: TimeRounding, of what: @autoclosure () -> String
  ) throws(MediaError) -> Int64 {
    guard isValid, let whole = try Int64(exactly: rounded(rounding)) else {
      throw .notExact(what(), "it exceeds 64 bits")
    }
    return whole
  }
}

extension MediaError {
  fileprivate static func notExact(_ what: String, _ reason: String) -> MediaError {
    MediaError(
      .notExact, "\(what) cannot be computed exactly: \(reason)",
      recovery: "choose rounder times or speeds")
  }
}
