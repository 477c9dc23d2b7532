// SPDX-License-Identifier: Apache-2.0

/// An exact time or duration: a whole number of units, of which `timescale` make a second.
///
/// The counterpart of `CMTime` without its flags: what `CMTime` marks as invalid or infinite
/// cannot be made here. Arithmetic is exact or an error; every rounding is named. Times that
/// are equal as numbers are equal and hash alike, however they are spelled.
public struct MediaTime: Sendable {
  /// The number of units.
  public let value: Int64
  /// Units per second, above zero.
  public let timescale: Int32

  /// Zero seconds.
  public static let zero = MediaTime(seconds: 0)

  /// Makes a time of `value / timescale` seconds.
  ///
  /// - Throws: `TimingError` with `.notPositive` for a timescale of zero or below.
  public init(value: Int64, timescale: Int32) throws(TimingError) {
    guard timescale > 0 else {
      throw TimingError(.notPositive, "the timescale \(timescale) is not above zero")
    }
    self.value = value
    self.timescale = timescale
  }

  /// Makes a time of whole seconds.
  public init(seconds: Int64) {
    value = seconds
    timescale = 1
  }

  /// Makes a time of whole microseconds, the unit of V4L2's time stamps.
  public init(microseconds: Int64) {
    value = microseconds
    timescale = 1_000_000
  }

  /// Makes a time of whole nanoseconds.
  public init(nanoseconds: Int64) {
    value = nanoseconds
    timescale = 1_000_000_000
  }

  /// Makes the time that is exactly this many seconds.
  ///
  /// - Throws: `TimingError` with `.overflow` when no value and timescale hold it exactly.
  public init(_ seconds: Rational) throws(TimingError) {
    guard let value = Int64(exactly: seconds.numerator),
      let timescale = Int32(exactly: seconds.denominator)
    else { throw .overflow("the time \(seconds) s") }
    self.value = value
    self.timescale = timescale
  }

  /// The time in seconds, as a fraction in lowest terms.
  public var seconds: Rational { Rational(reducing: Int128(value), Int128(timescale)) }

  /// The same time in units of another timescale.
  ///
  /// - Throws: `TimingError` with `.notPositive` for a timescale of zero or below, `.overflow`
  ///   when the value does not fit 64 bits.
  public func converted(
    to timescale: Int32, rounding: TimeRounding
  ) throws(TimingError) -> MediaTime {
    guard timescale > 0 else {
      throw TimingError(.notPositive, "the timescale \(timescale) is not above zero")
    }
    // 64 and 32 bits: the product always fits 128.
    let units = rounding.quotient(
      Int128(value) * Int128(timescale), Int128(self.timescale),
      isFiner: timescale > self.timescale)
    guard let value = Int64(exactly: units) else {
      throw .overflow("\(self) in units of 1/\(timescale) s")
    }
    return try MediaTime(value: value, timescale: timescale)
  }

  /// The whole nanoseconds that the named rounding gives.
  public func nanoseconds(_ rounding: TimeRounding) throws(TimingError) -> Int64 {
    try converted(to: 1_000_000_000, rounding: rounding).value
  }

  /// Seconds for display and signal processing, never for deciding.
  public var doubleValue: Double { Double(value) / Double(timescale) }
}

extension MediaTime {
  /// The sum, exactly, on the smallest timescale that holds both.
  ///
  /// - Throws: `TimingError` with `.overflow` when there is no such timescale or value.
  public static func + (left: MediaTime, right: MediaTime) throws(TimingError) -> MediaTime {
    if left.timescale == right.timescale {
      let (sum, overflow) = left.value.addingReportingOverflow(right.value)
      guard !overflow else { throw .overflow("the sum of \(left) and \(right)") }
      return try MediaTime(value: sum, timescale: left.timescale)
    }
    let sum = try left.seconds.adding(right.seconds)
    // Keep the common timescale where it fits, as CMTime does; else the lowest terms.
    let shared = Int128(
      greatestCommonDivisor(UInt128(left.timescale), UInt128(right.timescale)))
    let common = Int128(left.timescale) / shared * Int128(right.timescale)
    if let timescale = Int32(exactly: common) {
      return try MediaTime(sum).converted(to: timescale, rounding: .towardZero)
    }
    return try MediaTime(sum)
  }

  /// The difference, exactly, on the smallest timescale that holds both.
  ///
  /// - Throws: `TimingError` with `.overflow` when there is no such timescale or value.
  public static func - (left: MediaTime, right: MediaTime) throws(TimingError) -> MediaTime {
    guard right.value != .min else { throw .overflow("the difference of \(left) and \(right)") }
    return try left + MediaTime(value: -right.value, timescale: right.timescale)
  }

  /// The product with a fraction, exactly.
  ///
  /// - Throws: `TimingError` with `.overflow` when no value and timescale hold it.
  public func multiplied(by factor: Rational) throws(TimingError) -> MediaTime {
    try MediaTime(seconds.multiplied(by: factor))
  }
}

extension MediaTime: Hashable, Comparable {
  /// Equality of the times, not of their spelling: 1/2 s equals 2/4 s.
  public static func == (left: MediaTime, right: MediaTime) -> Bool {
    Int128(left.value) * Int128(right.timescale) == Int128(right.value) * Int128(left.timescale)
  }

  /// Compares exactly, by 128-bit cross multiplication.
  public static func < (left: MediaTime, right: MediaTime) -> Bool {
    Int128(left.value) * Int128(right.timescale) < Int128(right.value) * Int128(left.timescale)
  }

  /// Feeds the lowest terms, so that equal times hash alike.
  public func hash(into hasher: inout Hasher) { hasher.combine(seconds) }
}

extension MediaTime: CustomStringConvertible {
  /// The time as it is spelled: `"239/240"`, in seconds.
  public var description: String { "\(value)/\(timescale)" }
}
