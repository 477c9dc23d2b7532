// SPDX-License-Identifier: Apache-2.0

import BigInt
import OvercrankMediaCore
import Testing

/// Claims about ``Rational`` against integers without limits.
struct RationalTests {
  @Test func `Sums are exact, or overflow where no fraction holds them`() {
    forAll(.rationalSum) { random in
      let (left, right) = try random.rationals()
      let sum = Result { () throws(MediaError) in try left.adding(right) }
      return complaint(sum, expected: Fraction(left) + Fraction(right)).map {
        "\(left) + \(right): \($0)"
      }
    }
  }

  @Test func `Differences are exact, or overflow where no fraction holds them`() {
    forAll(.rationalDifference) { random in
      var (left, right) = try random.rationals()
      if random.below(4) == 0, right.numerator != .min { right = try right.negated() }
      let difference = Result { () throws(MediaError) in try left.subtracting(right) }
      return complaint(difference, expected: Fraction(left) - Fraction(right)).map {
        "\(left) - \(right): \($0)"
      }
    }
  }

  @Test func `Products are exact, or overflow where no fraction holds them`() {
    forAll(.rationalProduct) { random in
      let (left, right) = try random.rationals()
      let product = Result { () throws(MediaError) in try left.multiplied(by: right) }
      return complaint(product, expected: Fraction(left) * Fraction(right)).map {
        "\(left) * \(right): \($0)"
      }
    }
  }

  @Test func `Quotients are exact, or overflow where no fraction holds them`() {
    forAll(.rationalQuotient) { random in
      let (left, right) = try random.rationals()
      let quotient = Result { () throws(MediaError) in try left.divided(by: right) }
      if right == .zero {
        guard case .failure(let error) = quotient else { return "\(left) / 0 is \(quotient)" }
        return error.code == .notPositive ? nil : "\(left) / 0: \(error)"
      }
      return complaint(quotient, expected: Fraction(left) / Fraction(right)).map {
        "\(left) / \(right): \($0)"
      }
    }
  }

  @Test func `Comparison and hashing are those of the exact numbers`() {
    forAll(.rationalComparison) { random in
      let left = try random.rational()
      let right = try random.below(4) == 0 ? nextTo(left) : random.rational()
      let order = Fraction(left).compared(to: Fraction(right))
      let answers = (left < right, left == right, left > right)
      guard answers == (order < 0, order == 0, order > 0) else {
        return "\(left) against \(right): \(answers), not \(order)"
      }
      return order != 0 || left.hashValue == right.hashValue ? nil : "\(left) hashes as two"
    }
  }

  @Test func `Whole numbers are rounded in all six ways as they are defined`() {
    forAll(.rationalRounding) { random in
      let number = try random.rational()
      for rounding in TimeRounding.allCases {
        let expected = Fraction(number).rounded(rounding, isFiner: false)
        if BigInt(number.rounded(rounding)) != expected {
          return "\(number) \(rounding) is \(expected), not \(number.rounded(rounding))"
        }
      }
      return nil
    }
  }

  @Test func `Results that fit only once they are reduced are found`() throws {
    let huge = try Rational(.max, 3)
    #expect(try huge.adding(Rational(.max, 6)) == Rational(.max, 2))
    #expect(try Rational(.min, 1).divided(by: Rational(.min, 1)) == .one)
    #expect(try Rational(-1).subtracting(Rational(.min, 1)) == Rational(.max, 1))
    #expect(code { _ = try Rational(.max, 1).adding(.one) } == .overflow)
    #expect(code { _ = try Rational(.min, 1).adding(Rational(.min, 1)) } == .overflow)
    #expect(code { _ = try Rational(.min, 1).negated() } == .overflow)
    #expect(code { _ = try Rational.one.divided(by: Rational(.min, 1)) } == .overflow)
  }

  @Test func `A denominator is above zero`() {
    #expect(code { _ = try Rational(1, 0) } == .notPositive)
    #expect(code { _ = try Rational(1, .min) } == .notPositive)
  }

  /// The same fraction, or one so near that only 256 bits tell them apart.
  private func nextTo(_ number: Rational) throws -> Rational {
    guard number.numerator < .max, number.denominator < .max else { return number }
    return try Rational(number.numerator + 1, number.denominator + 1)
  }
}
