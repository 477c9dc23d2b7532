// SPDX-License-Identifier: Apache-2.0

/// Source seconds per output second: 1/8 is eight times slower, 2 is twice as fast.
public struct Speed: Hashable, Sendable {
  /// The speed as a fraction above zero.
  public let fraction: Rational

  /// Normal speed, 1/1.
  public static let normal = Speed(1)

  /// Makes a speed of `numerator / denominator`: `Speed(1, over: 8)`, `Speed(2)`.
  ///
  /// - Precondition: Both numbers are above zero. Use ``init(exactly:)`` for numbers from outside
  ///   the program.
  public init(_ numerator: Int, over denominator: Int = 1) {
    let fraction = Rational(Int128(numerator), over: Int128(denominator))
    guard let speed = Speed(exactly: fraction) else {
      preconditionFailure("a speed is above zero")
    }
    self = speed
  }

  /// Makes a speed from a fraction above zero.
  ///
  /// - Throws: `MediaError` with `.notPositive` for zero and below, `.overflow` for an invalid
  ///   number.
  public init(_ fraction: Rational) throws(MediaError) {
    let fraction = try fraction.checked("a speed")
    guard fraction > .zero else {
      throw MediaError(.notPositive, "a speed of \(fraction) is not above zero")
    }
    self.fraction = fraction
  }

  /// Makes a speed from a fraction; nil for zero and below, and for an invalid number.
  public init?(exactly fraction: Rational) {
    guard fraction.isValid, fraction > .zero else { return nil }
    self.fraction = fraction
  }

  /// Output seconds per source second: the inverse.
  public var stretch: Rational { 1 / fraction }

  /// Returns the output duration of a source duration.
  ///
  /// - Throws: `MediaError` with `.overflow` when the duration is not exactly representable.
  public func targetDuration(of source: MediaTime) throws(MediaError) -> MediaTime {
    try MediaTime(source / fraction)
  }
}

extension Speed: Comparable, CustomStringConvertible {
  /// Compares the fractions exactly; a slower speed is less.
  public static func < (left: Speed, right: Speed) -> Bool { left.fraction < right.fraction }

  /// The speed as `"1/8"`.
  public var description: String { fraction.description }
}
