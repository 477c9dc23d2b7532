// SPDX-License-Identifier: Apache-2.0

import BigInt
import OvercrankMediaCore
import TestSupport
import Testing

/// Arithmetic of ``Rational``, compared with integers of unlimited size.
struct RationalTests {
  @Test func `Sums of rationals are exact or invalid`() {
    forAll(.rationalSum) { random in
      let (left, right) = try random.rationals()
      let sum = left + right
      return complaint(sum, expected: Fraction(left) + Fraction(right)).map {
        "\(left) + \(right): \($0)"
      }
    }
  }

  @Test func `Differences of rationals are exact or invalid`() {
    forAll(.rationalDifference) { random in
      var (left, right) = try random.rationals()
      if random.below(4) == 0, right.numerator != .min { right = -right }
      let difference = left - right
      return complaint(difference, expected: Fraction(left) - Fraction(right)).map {
        "\(left) - \(right): \($0)"
      }
    }
  }

  @Test func `Products of rationals are exact or invalid`() {
    forAll(.rationalProduct) { random in
      let (left, right) = try random.rationals()
      let product = left * right
      return complaint(product, expected: Fraction(left) * Fraction(right)).map {
        "\(left) * \(right): \($0)"
      }
    }
  }

  @Test func `Quotients of rationals are exact or invalid`() {
    forAll(.rationalQuotient) { random in
      let (left, right) = try random.rationals()
      let quotient = left / right
      if right == .zero { return quotient == .invalid ? nil : "\(left) / 0 is \(quotient)" }
      return complaint(quotient, expected: Fraction(left) / Fraction(right)).map {
        "\(left) / \(right): \($0)"
      }
    }
  }

  @Test func `Rationals are compared and hashed by their exact values`() {
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

  @Test func `Rounding a rational to an integer follows six rounding modes`() {
    forAll(.rationalRounding) { random in
      let number = try random.rational()
      for rounding in TimeRounding.allCases {
        let expected = Fraction(number).rounded(rounding, isFiner: false)
        let rounded = try number.rounded(rounding)
        if BigInt(rounded) != expected {
          return "\(number) \(rounding) is \(expected), not \(rounded)"
        }
      }
      return nil
    }
  }

  @Test func `A rational that fits Int128 only after reduction is valid`() {
    let huge = Rational(.max, over: 3)
    #expect(huge + Rational(.max, over: 6) == Rational(.max, over: 2))
    #expect(least / least == 1)
    #expect(-1 - least == Rational(Int128.max))
    for overflow in [Rational(Int128.max) + 1, least + least, -least, 1 / least, least.magnitude] {
      #expect(overflow == .invalid)
    }
  }

  @Test func `A denominator of zero or below makes an invalid rational`() {
    #expect(Rational(1, over: 0) == .invalid)
    #expect(Rational(1, over: .min) == .invalid)
    #expect(Rational(0, over: -1) == .invalid)
  }

  @Test func `Arithmetic with an invalid rational gives an invalid result`() {
    for number: Rational in [0, 1, -7, Rational(1, over: 3), least, .invalid] {
      for result in [
        number + .invalid, number - .invalid, number * .invalid, number / .invalid,
        .invalid + number, .invalid - number, .invalid * number, .invalid / number,
      ] { #expect(!result.isValid) }
    }
    #expect(!(-Rational.invalid).isValid && !Rational.invalid.magnitude.isValid)
    #expect(Rational.invalid == .invalid && Rational.invalid != 0)
    #expect(Rational.invalid.description == "invalid" && Rational.invalid.doubleValue.isNaN)
    #expect(Rational.invalid.displayText == "invalid")
  }

  @Test func `An invalid rational is greater than all others`() {
    let ordered: [Rational] = [least, -1, 0, Rational(1, over: 3), Rational(Int128.max), .invalid]
    #expect(ordered.shuffled().sorted() == ordered)
    #expect(!(Rational.invalid < .invalid) && Rational.invalid <= .invalid)
  }

  @Test func `Converting an invalid rational to a time throws an overflow`() {
    #expect(code { _ = try MediaTime(.invalid) } == .overflow)
    #expect(code { _ = try FrameRate(.invalid) } == .overflow)
    #expect(code { _ = try Speed(.invalid) } == .overflow)
    #expect(code { _ = try TimeRange(start: 0, end: .invalid) } == .overflow)
    #expect(code { _ = try TimeRange(start: .invalid, end: 1) } == .overflow)
    #expect(code { _ = try Rational.invalid.rounded(.towardZero) } == .overflow)
    #expect(MediaTime(exactly: .invalid) == nil)
    #expect(FrameRate(exactly: .invalid) == nil)
    #expect(Speed(exactly: .invalid) == nil)
  }

  private let least = Rational(Int128.min)

  /// A fraction equal to `number`, or so close that only 256 bits distinguish the two.
  private func nextTo(_ number: Rational) throws -> Rational {
    guard number.numerator < .max, number.denominator < .max else { return number }
    return Rational(number.numerator + 1, over: number.denominator + 1)
  }
}
