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
  /// - Throws: `TimingError` with `.notPositive` for a denominator of zero or below.
  public init(_ numerator: Int128, _ denominator: Int128) throws(TimingError) {
    guard denominator > 0 else {
      throw TimingError(.notPositive, "the denominator \(denominator) is not above zero")
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
  public func adding(_ other: Rational) throws(TimingError) -> Rational {
    let shared = Int128(
      greatestCommonDivisor(denominator.magnitude, other.denominator.magnitude))
    let scale = other.denominator / shared
    let left = numerator.multipliedReportingOverflow(by: scale)
    let right = other.numerator.multipliedReportingOverflow(by: denominator / shared)
    let sum = left.partialValue.addingReportingOverflow(right.partialValue)
    let below = denominator.multipliedReportingOverflow(by: scale)
    if left.overflow || right.overflow || sum.overflow || below.overflow {
      throw .overflow("a sum")
    }
    return Rational(reducing: sum.partialValue, below.partialValue)
  }

  /// The difference, exactly.
  public func subtracting(_ other: Rational) throws(TimingError) -> Rational {
    try adding(other.negated())
  }

  /// The product, exactly.
  public func multiplied(by other: Rational) throws(TimingError) -> Rational {
    // Reducing crosswise first keeps the products as small as they can be.
    let first = Rational(reducing: numerator, other.denominator)
    let second = Rational(reducing: other.numerator, denominator)
    let above = first.numerator.multipliedReportingOverflow(by: second.numerator)
    let below = first.denominator.multipliedReportingOverflow(by: second.denominator)
    if above.overflow || below.overflow { throw .overflow("a product") }
    return Rational(reducing: above.partialValue, below.partialValue)
  }

  /// The quotient, exactly.
  ///
  /// - Throws: `TimingError` with `.notPositive` when `other` is zero, `.overflow` when the
  ///   result does not fit.
  public func divided(by other: Rational) throws(TimingError) -> Rational {
    guard other.numerator != 0 else { throw TimingError(.notPositive, "a division by zero") }
    return try multiplied(by: other.inverted())
  }

  /// The number with the other sign.
  public func negated() throws(TimingError) -> Rational {
    guard numerator != .min else { throw .overflow("a negation") }
    return Rational(reducing: -numerator, denominator)
  }

  /// One divided by this, which is not zero.
  private func inverted() throws(TimingError) -> Rational {
    guard numerator != .min else { throw .overflow("an inverse") }
    return numerator < 0
      ? Rational(reducing: -denominator, -numerator) : Rational(reducing: denominator, numerator)
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

/// The greatest common divisor by Euclid; never zero unless both are.
func greatestCommonDivisor(_ first: UInt128, _ second: UInt128) -> UInt128 {
  var (a, b) = (first, second)
  while b != 0 { (a, b) = (b, a % b) }
  return a
}
