// SPDX-License-Identifier: Apache-2.0

/// An exact time or duration: a number of units, `timescale` units per second.
///
/// The counterpart of `CMTime` without its flags: every time is a valid number. Sums and
/// differences are ``Rational`` seconds, which ``init(_:)`` converts back to a time, or throws if
/// no time represents them. Nothing is rounded unless the caller names the rounding. Comparisons
/// use the seconds, whatever the timescales: 1/2 s equals 2/4 s.
public struct MediaTime: Sendable {
  /// The number of units of 1/``timescale`` seconds.
  public let value: Int64
  /// Units per second, above zero.
  public let timescale: Int32

  /// Zero seconds.
  public static let zero = MediaTime(seconds: 0)

  /// Makes a time of `value / timescale` seconds: `MediaTime(1, over: 4)` is a quarter.
  ///
  /// - Precondition: The timescale is above zero. Use ``init(exactly:over:)`` for numbers from
  ///   outside the program.
  public init(_ value: Int64, over timescale: Int32) {
    precondition(timescale > 0, "a timescale is above zero")
    (self.value, self.timescale) = (value, timescale)
  }

  /// Makes a time of `value / timescale` seconds; nil for a timescale of zero or below, or numbers
  /// that do not fit 64 and 32 bits.
  public init?(exactly value: some BinaryInteger, over timescale: some BinaryInteger) {
    guard let value = Int64(exactly: value), let timescale = Int32(exactly: timescale),
      timescale > 0
    else { return nil }
    self.init(value, over: timescale)
  }

  /// Makes a time of whole seconds.
  public init(seconds: Int64) {
    value = seconds
    timescale = 1
  }

  /// Makes a time of whole microseconds, the unit of V4L2 timestamps.
  public init(microseconds: Int64) {
    value = microseconds
    timescale = 1_000_000
  }

  /// Makes a time of whole nanoseconds.
  public init(nanoseconds: Int64) {
    value = nanoseconds
    timescale = 1_000_000_000
  }

  /// Makes the time of exactly this many seconds.
  ///
  /// - Throws: `MediaError` with `.overflow` when no value and timescale represent the number
  ///   exactly, or when it is invalid.
  public init(_ seconds: Rational) throws(MediaError) {
    guard let time = MediaTime(exactly: seconds) else {
      throw .overflow("the time \(seconds.exactDisplayText)")
    }
    self = time
  }

  /// Makes the time of exactly this many seconds; nil where no value and timescale represent it.
  public init?(exactly seconds: Rational) {
    self.init(exactly: seconds.numerator, over: seconds.denominator)
  }

  /// The time in seconds, as a fraction in lowest terms.
  public var seconds: Rational { Rational(reducing: Int128(value), Int128(timescale)) }

  /// Returns the same time in units of another timescale.
  ///
  /// - Throws: `MediaError` with `.notPositive` for a timescale of zero or below, `.overflow`
  ///   when the value does not fit 64 bits.
  public func converted(
    to timescale: Int32, rounding: TimeRounding
  ) throws(MediaError) -> MediaTime {
    guard timescale > 0 else {
      throw MediaError(.notPositive, "the timescale \(timescale) is not above zero")
    }
    // The value has 64 bits and the timescale 32, so the product always fits 128 bits.
    let units = rounding.quotient(
      Int128(value) * Int128(timescale), Int128(self.timescale),
      isFiner: timescale > self.timescale)
    guard let value = Int64(exactly: units) else {
      throw .overflow("\(exactDisplayText) in units of 1/\(timescale) s")
    }
    return MediaTime(value, over: timescale)
  }

  /// Returns the time in whole nanoseconds, rounded as the caller names.
  public func nanoseconds(_ rounding: TimeRounding) throws(MediaError) -> Int64 {
    try converted(to: 1_000_000_000, rounding: rounding).value
  }

  /// The seconds for display and signal processing; never use them for decisions.
  public var doubleValue: Double { Double(value) / Double(timescale) }

  /// The exact sum in seconds.
  public static func + (left: MediaTime, right: MediaTime) -> Rational {
    left.seconds + right.seconds
  }

  /// The exact difference in seconds.
  public static func - (left: MediaTime, right: MediaTime) -> Rational {
    left.seconds - right.seconds
  }

  /// The exact product in seconds.
  public static func * (left: MediaTime, right: Rational) -> Rational { left.seconds * right }

  /// The exact quotient in seconds; invalid for a division by zero.
  public static func / (left: MediaTime, right: Rational) -> Rational { left.seconds / right }
}

extension MediaTime: Hashable, Comparable {
  /// Compares the seconds, whatever the timescales: 1/2 s equals 2/4 s.
  public static func == (left: MediaTime, right: MediaTime) -> Bool {
    Int128(left.value) * Int128(right.timescale) == Int128(right.value) * Int128(left.timescale)
  }

  /// Compares exactly, by 128-bit cross multiplication.
  public static func < (left: MediaTime, right: MediaTime) -> Bool {
    Int128(left.value) * Int128(right.timescale) < Int128(right.value) * Int128(left.timescale)
  }

  /// Hashes the seconds in lowest terms, because equal times may have different timescales and must
  /// have the same hash.
  public func hash(into hasher: inout Hasher) { hasher.combine(seconds) }
}

extension MediaTime: CustomStringConvertible {
  /// The value over the timescale, in seconds: `"239/240"`.
  public var description: String { "\(value)/\(timescale)" }
}

extension MediaTime {
  /// The time in nanoseconds, rounded to the nearest and clamped to 64 bits.
  package var wholeNanoseconds: Int64 { whole(per: 1_000_000_000) }

  /// The time in microseconds, rounded to the nearest and clamped to 64 bits.
  package var wholeMicroseconds: Int64 { whole(per: 1_000_000) }

  private func whole(per second: Int128) -> Int64 {
    // The value has 64 bits and `second` at most 30, so their product has at most 94 bits. Nothing
    // below exceeds 96 bits, so `Int128` cannot overflow.
    let (product, scale) = (Int128(value) * second, Int128(timescale))
    let magnitude = (2 * Int128(product.magnitude) + scale) / (2 * scale)
    return Int64(clamping: product < 0 ? -magnitude : magnitude)
  }
}

extension Duration {
  /// The duration in nanoseconds, rounded toward zero and clamped to 64 bits.
  package var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return Int64(
      clamping: Int128(seconds) * 1_000_000_000 + Int128(attoseconds / 1_000_000_000))
  }

  /// The duration in seconds, for display only; never use it for decisions.
  package var doubleValue: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
