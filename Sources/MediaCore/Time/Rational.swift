// SPDX-License-Identifier: Apache-2.0

/// An exact fraction in lowest terms, with 128 bits above and below.
///
/// Results that would not fit are errors; nothing is rounded, and nothing traps.
public struct Rational: Hashable, Sendable {
  /// The upper number; it carries the sign.
  public let numerator: Int128
  /// The lower number, above zero.
  public let denominator: Int128

  /// Zero.
  public static let zero = Rational(0)
  /// One.
  public static let one = Rational(1)

  /// Makes a whole number.
  public init(_ whole: Int64) {
    numerator = Int128(whole)
    denominator = 1
  }

  /// Makes a fraction and reduces it.
  ///
  /// - Throws: `MediaError` with `.notPositive` for a denominator of zero or below.
  public init(_ numerator: Int128, _ denominator: Int128) throws(MediaError) {
    guard denominator > 0 else {
      throw MediaError(.notPositive, "the denominator \(denominator) is not above zero")
    }
    self.init(reducing: numerator, denominator)
  }

  /// Makes a fraction whose denominator is known to be above zero.
  init(reducing numerator: Int128, _ denominator: Int128) {
    let divisor = greatestCommonDivisor(numerator.magnitude, denominator.magnitude)
    // The divisor is at most the denominator, so it fits a signed number.
    self.numerator = numerator / Int128(divisor)
    self.denominator = denominator / Int128(divisor)
  }

  /// The sum, exactly.
  ///
  /// - Throws: `MediaError` with `.overflow` when the sum does not fit.
  public func adding(_ other: Rational) throws(MediaError) -> Rational {
    guard let sum = combined(with: other, subtracting: false) else {
      throw .overflow("the sum of \(self) and \(other)")
    }
    return sum
  }

  /// The difference, exactly.
  ///
  /// - Throws: `MediaError` with `.overflow` when the difference does not fit.
  public func subtracting(_ other: Rational) throws(MediaError) -> Rational {
    guard let difference = combined(with: other, subtracting: true) else {
      throw .overflow("the difference of \(self) and \(other)")
    }
    return difference
  }

  /// The product, exactly.
  ///
  /// - Throws: `MediaError` with `.overflow` when the product does not fit.
  public func multiplied(by other: Rational) throws(MediaError) -> Rational {
    let product = Self.product(
      isNegative: (numerator < 0) != (other.numerator < 0),
      numerator.magnitude, other.numerator.magnitude,
      over: denominator.magnitude, other.denominator.magnitude)
    guard let product else { throw .overflow("the product of \(self) and \(other)") }
    return product
  }

  /// The quotient, exactly.
  ///
  /// - Throws: `MediaError` with `.notPositive` when `other` is zero, `.overflow` when the
  ///   result does not fit.
  public func divided(by other: Rational) throws(MediaError) -> Rational {
    guard other.numerator != 0 else { throw MediaError(.notPositive, "a division by zero") }
    let quotient = Self.product(
      isNegative: (numerator < 0) != (other.numerator < 0),
      numerator.magnitude, other.denominator.magnitude,
      over: denominator.magnitude, other.numerator.magnitude)
    guard let quotient else { throw .overflow("the quotient of \(self) and \(other)") }
    return quotient
  }

  /// The number with the other sign.
  ///
  /// - Throws: `MediaError` with `.overflow` for a numerator of -2^127.
  public func negated() throws(MediaError) -> Rational {
    guard numerator != .min else { throw .overflow("the opposite of \(self)") }
    return Rational(reducing: -numerator, denominator)
  }

  /// The whole number that the named rounding gives.
  ///
  /// `quickTime` rounds toward zero here, since a whole number is the coarsest scale.
  public func rounded(_ rounding: TimeRounding) -> Int128 {
    rounding.quotient(numerator, denominator, isFiner: false)
  }

  /// An approximation for display and signal processing, never for deciding.
  public var doubleValue: Double { Double(numerator) / Double(denominator) }
}

extension Rational: Comparable {
  /// Compares exactly, by 256-bit cross multiplication.
  public static func < (left: Rational, right: Rational) -> Bool {
    let a = left.numerator.multipliedFullWidth(by: right.denominator)
    let b = right.numerator.multipliedFullWidth(by: left.denominator)
    return a.high == b.high ? a.low < b.low : a.high < b.high
  }
}

extension Rational: CustomStringConvertible {
  /// The fraction as `"1/8"`, whole numbers with their denominator: `"240/1"`.
  public var description: String { "\(numerator)/\(denominator)" }
}

extension Rational {
  /// `a / c * b / d`, where both fractions are in lowest terms, or nil where that does not fit.
  private static func product(
    isNegative: Bool, _ a: UInt128, _ b: UInt128, over c: UInt128, _ d: UInt128
  ) -> Rational? {
    guard a != 0, b != 0 else { return .zero }
    // What is left after reducing crosswise has no common divisor: it fits, or nothing does.
    let (first, second) = (greatestCommonDivisor(a, d), greatestCommonDivisor(b, c))
    let above = (a / first).multipliedReportingOverflow(by: b / second)
    let below = (c / second).multipliedReportingOverflow(by: d / first)
    guard !above.overflow, !below.overflow,
      let numerator = Int128(isNegative: isNegative, magnitude: above.partialValue),
      let denominator = Int128(exactly: below.partialValue)
    else { return nil }
    return Rational(reducing: numerator, denominator)
  }

  /// The sum or the difference, or nil where that does not fit.
  private func combined(with other: Rational, subtracting: Bool) -> Rational? {
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

  /// The same by 256 bits, for what fits only once it is reduced.
  ///
  /// After Knuth, The Art of Computer Programming, volume 2, section 4.5.1.
  private func widelyCombined(
    with other: Rational, subtracting: Bool, shared: Int128
  ) -> Rational? {
    // Each product is below 2^254, so the sum of two fits 256 bits with its sign.
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
    // Only a divisor of both denominators can be left to take out.
    let shared = shared.magnitude
    let rest = shared.dividingFullWidth((high.magnitude % shared, low)).remainder
    let divisor = greatestCommonDivisor(rest, shared)
    guard high.magnitude < divisor else { return nil }
    let above = divisor.dividingFullWidth((high.magnitude, low)).quotient
    let below = (denominator.magnitude / shared).multipliedReportingOverflow(
      by: other.denominator.magnitude / divisor)
    guard !below.overflow,
      let numerator = Int128(isNegative: isNegative, magnitude: above),
      let denominator = Int128(exactly: below.partialValue)
    else { return nil }
    return Rational(reducing: numerator, denominator)
  }
}

extension Int128 {
  /// The number of this sign and size, or nil where there is none.
  fileprivate init?(isNegative: Bool, magnitude: UInt128) {
    guard magnitude <= (isNegative ? Int128.min : Int128.max).magnitude else { return nil }
    self.init(truncatingIfNeeded: isNegative ? ~magnitude &+ 1 : magnitude)
  }
}

/// The greatest common divisor by Euclid; never zero unless both are.
package func greatestCommonDivisor(_ first: UInt128, _ second: UInt128) -> UInt128 {
  var (a, b) = (first, second)
  while b != 0 { (a, b) = (b, a % b) }
  return a
}
