// SPDX-License-Identifier: Apache-2.0

/// A change from one speed to another, as the output's time goes by.
///
/// The source time reached at each instant is the integral of the speed, which is a polynomial
/// with rational coefficients: nothing is cut into steps, and nothing is rounded.
///
/// With `u` from 0 to 1 over the output's time, `from` and `to` the speeds and `U` the time:
///
/// | Easing | Speed at `u` | Source time at `u` |
/// |---|---|---|
/// | `linear` | from + (to − from)·u | U·(from·u + (to − from)·u²/2) |
/// | `easeInOut` | from + (to − from)·(3u² − 2u³) | U·(from·u + (to − from)·(u³ − u⁴/2)) |
///
/// Either way a ramp takes `U·(from + to)/2` of the source.
public struct SpeedRamp: Hashable, Sendable, Codable {
  /// How the speed goes from one to the other.
  public enum Easing: String, Hashable, Sendable, CaseIterable, Codable {
    /// By the same amount each instant.
    case linear
    /// Slowly at first and at last, so that the change itself has no jolt.
    case easeInOut = "eased"
  }

  /// The speed at the first instant.
  public let from: Speed
  /// The speed that is reached at the end.
  public let to: Speed
  /// How the speed goes from one to the other.
  public let easing: Easing

  /// Makes a ramp between two speeds.
  public init(from: Speed, to: Speed, easing: Easing = .linear) {
    self.from = from
    self.to = to
    self.easing = easing
  }

  /// The same change the other way round.
  public var reversed: SpeedRamp { SpeedRamp(from: to, to: from, easing: easing) }

  /// The output time that a stretch of source time takes: twice over the sum of the speeds.
  ///
  /// - Throws: `MediaError` with `.overflow` when it cannot be said exactly.
  public func targetDuration(of source: MediaTime) throws(MediaError) -> MediaTime {
    try MediaTime(2 * source.seconds / (from.fraction + to.fraction))
  }

  /// The share of the ramp's source that has played after a share of its output time.
  ///
  /// It is the sum of `coefficients[i]·uⁱ` over `divisor`, all of them whole.
  func shareOfSource() throws(MediaError) -> SharePolynomial {
    // Only the ratio of the speeds matters; in lowest terms its two numbers stand for them.
    let ratio = try (to.fraction / from.fraction)
      .checked("the ramp from \(self.from) to \(self.to)")
    let (from, to) = (ratio.denominator, ratio.numerator)
    let twice = from.multipliedReportingOverflow(by: 2)
    let change = to.subtractingReportingOverflow(from)
    let double = change.partialValue.multipliedReportingOverflow(by: 2)
    let sum = from.addingReportingOverflow(to)
    guard !twice.overflow, !change.overflow, !double.overflow, !sum.overflow else {
      throw .overflow("the ramp from \(self.from) to \(self.to)")
    }
    switch easing {
    case .linear:
      return SharePolynomial([0, twice.partialValue, change.partialValue], over: sum.partialValue)
    case .easeInOut:
      return SharePolynomial(
        [0, twice.partialValue, 0, double.partialValue, -change.partialValue],
        over: sum.partialValue)
    }
  }
}

extension SpeedRamp: CustomStringConvertible {
  /// The ramp as `"1/1 to 1/8"`, or `"1/1 to 1/8 easeInOut"`.
  public var description: String {
    "\(from) to \(to)\(easing == .linear ? "" : " \(easing.rawValue)")"
  }
}

/// A polynomial that goes from 0 to 1 while its argument does, and never falls.
struct SharePolynomial: Hashable {
  /// Whole numbers, of which the first, the constant, is zero.
  let coefficients: [Int128]
  /// Above zero.
  let divisor: Int128

  /// What plays at one speed.
  static let constant = SharePolynomial([0, 1], over: 1)

  init(_ coefficients: [Int128], over divisor: Int128) {
    self.coefficients = coefficients
    self.divisor = divisor
  }

  func value(at argument: Rational) -> Rational {
    // The ends are what they are, however large the numbers.
    if argument == .zero || argument == .one { return argument }
    var value = Rational.zero
    for coefficient in coefficients.reversed() {
      value = value * argument + Rational(coefficient)
    }
    return value / Rational(divisor)
  }

  func slope(at argument: Rational) -> Rational {
    var slope = Rational.zero
    for (power, coefficient) in coefficients.enumerated().dropFirst().reversed() {
      let factor = Rational(coefficient) * Rational(Int64(power))
      slope = slope * argument + factor
    }
    return slope / Rational(divisor)
  }

  /// Where it takes a value, nearly; only to know where to look.
  func estimate(of value: Double, from low: Double, to high: Double) -> Double {
    var (low, high) = (low, high)
    for _ in 0..<50 {
      let middle = (low + high) / 2
      let reached = coefficients.reversed().reduce(0) { $0 * middle + Double($1) }
      if reached <= value * Double(divisor) { low = middle } else { high = middle }
    }
    return low
  }

  /// Whether its value at `above / below` is less than, equal to or more than another fraction.
  ///
  /// - Returns: -1, 0 or 1, by whole numbers without a limit.
  func compare(at above: Int128, over below: Int128, with value: Rational) -> Int {
    let (x, y) = (WideInteger(above), WideInteger(below))
    var sum = WideInteger.zero
    var power = WideInteger(1)
    for coefficient in coefficients.reversed() {
      sum = sum * x + WideInteger(coefficient) * power
      power = power * y
    }
    // The sum is over the divisor and one power less than is now there.
    let left = sum * y * WideInteger(value.denominator)
    return (left - WideInteger(value.numerator) * WideInteger(divisor) * power).sign
  }
}
