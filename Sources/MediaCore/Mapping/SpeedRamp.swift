// SPDX-License-Identifier: Apache-2.0

/// A change from one speed to another over output time.
///
/// The source time at each instant is the integral of the speed. The integral is a polynomial with
/// rational coefficients, so it is computed exactly and not by summing small steps.
///
/// With `u` from 0 to 1 over the output duration `U`, and the speeds `from` and `to`:
///
/// | Easing | Speed at `u` | Source time at `u` |
/// |---|---|---|
/// | `linear` | from + (to − from)·u | U·(from·u + (to − from)·u²/2) |
/// | `easeInOut` | from + (to − from)·(3u² − 2u³) | U·(from·u + (to − from)·(u³ − u⁴/2)) |
///
/// Both easings play `U·(from + to)/2` of the source.
public struct SpeedRamp: Hashable, Sendable, Codable {
  /// The shape of the speed change.
  public enum Easing: String, Hashable, Sendable, CaseIterable, Codable {
    /// The speed changes at a constant rate.
    case linear
    /// The speed changes slowly at both ends and faster in between (smoothstep).
    case easeInOut = "eased"
  }

  /// The speed at the start of the ramp.
  public let from: Speed
  /// The speed at the end of the ramp.
  public let to: Speed
  /// The shape of the speed change.
  public let easing: Easing

  /// Makes a ramp between two speeds.
  public init(from: Speed, to: Speed, easing: Easing = .linear) {
    (self.from, self.to, self.easing) = (from, to, easing)
  }

  /// The ramp with start and end speed exchanged.
  public var reversed: SpeedRamp { SpeedRamp(from: to, to: from, easing: easing) }

  /// Returns the output duration of a source duration: twice the source over the sum of the speeds.
  ///
  /// - Throws: `MediaError` with `.overflow` when the duration is not exactly representable.
  public func targetDuration(of source: MediaTime) throws(MediaError) -> MediaTime {
    try MediaTime(2 * source.seconds / (from.fraction + to.fraction))
  }

  /// Returns the polynomial from the fraction of the output duration to the fraction of the source
  /// duration that has played.
  ///
  /// Its value is the sum of `coefficients[i]·uⁱ`, divided by `divisor`; all are integers.
  func shareOfSource() throws(MediaError) -> SharePolynomial {
    // Fractions of the source depend only on the ratio of the two speeds. In lowest terms, the
    // ratio gives the smallest coefficients.
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

/// A monotone polynomial that maps 0 to 0 and 1 to 1.
struct SharePolynomial: Hashable {
  /// Integer coefficients, constant term first; the constant term is zero.
  let coefficients: [Int128]
  /// The number by which all coefficients are divided, above zero.
  let divisor: Int128

  /// The polynomial of a constant speed: the identity.
  static let constant = SharePolynomial([0, 1], over: 1)

  init(_ coefficients: [Int128], over divisor: Int128) {
    (self.coefficients, self.divisor) = (coefficients, divisor)
  }

  func value(at argument: Rational) -> Rational {
    // At 0 and 1, the polynomial's value equals the argument. Returning the argument avoids
    // products that may overflow.
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

  /// Estimates the argument at which the polynomial takes a value, as a start for a search.
  func estimate(of value: Double, from low: Double, to high: Double) -> Double {
    var (low, high) = (low, high)
    for _ in 0..<50 {
      let middle = (low + high) / 2
      let reached = coefficients.reversed().reduce(0) { $0 * middle + Double($1) }
      if reached <= value * Double(divisor) { low = middle } else { high = middle }
    }
    return low
  }

  /// Compares the value at `above / below` with another fraction.
  ///
  /// - Returns: -1 if the polynomial's value is less, 0 if it is equal, and 1 if it is greater. The
  ///   comparison uses integers of unlimited size, so it is exact.
  func compare(at above: Int128, over below: Int128, with value: Rational) -> Int {
    let (x, y) = (WideInteger(above), WideInteger(below))
    var sum = WideInteger.zero
    var power = WideInteger(1)
    for coefficient in coefficients.reversed() {
      sum = sum * x + WideInteger(coefficient) * power
      power = power * y
    }
    // After Horner's scheme with x = above and y = below, the polynomial's value is
    // `sum·y / (power·divisor)`. The comparison multiplies both fractions by both denominators, so
    // that it needs no division.
    let left = sum * y * WideInteger(value.denominator)
    return (left - WideInteger(value.numerator) * WideInteger(divisor) * power).sign
  }
}
