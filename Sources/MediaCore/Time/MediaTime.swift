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
  /// - Throws: `MediaError` with `.notPositive` for a timescale of zero or below.
  public init(value: Int64, timescale: Int32) throws(MediaError) {
    guard timescale > 0 else {
      throw MediaError(.notPositive, "the timescale \(timescale) is not above zero")
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
  /// - Throws: `MediaError` with `.overflow` when no value and timescale hold it exactly.
  public init(_ seconds: Rational) throws(MediaError) {
    guard let value = Int64(exactly: seconds.numerator),
      let timescale = Int32(exactly: seconds.denominator)
    else { throw .overflow("the time \(seconds.exactDisplayText)") }
    self.value = value
    self.timescale = timescale
  }

  /// The time in seconds, as a fraction in lowest terms.
  public var seconds: Rational { Rational(reducing: Int128(value), Int128(timescale)) }

  /// The same time in units of another timescale.
  ///
  /// - Throws: `MediaError` with `.notPositive` for a timescale of zero or below, `.overflow`
  ///   when the value does not fit 64 bits.
  public func converted(
    to timescale: Int32, rounding: TimeRounding
  ) throws(MediaError) -> MediaTime {
    guard timescale > 0 else {
      throw MediaError(.notPositive, "the timescale \(timescale) is not above zero")
    }
    // 64 and 32 bits: the product always fits 128.
    let units = rounding.quotient(
      Int128(value) * Int128(timescale), Int128(self.timescale),
      isFiner: timescale > self.timescale)
    guard let value = Int64(exactly: units) else {
      throw .overflow("\(exactDisplayText) in units of 1/\(timescale) s")
    }
    return try MediaTime(value: value, timescale: timescale)
  }

  /// The whole nanoseconds that the named rounding gives.
  public func nanoseconds(_ rounding: TimeRounding) throws(MediaError) -> Int64 {
    try converted(to: 1_000_000_000, rounding: rounding).value
  }

  /// Seconds for display and signal processing, never for deciding.
  public var doubleValue: Double { Double(value) / Double(timescale) }
}

extension MediaTime {
  /// The sum, exactly: on the least common timescale, or in lowest terms where that does not fit.
  ///
  /// - Throws: `MediaError` with `.overflow` when no value and timescale hold it.
  public static func + (left: MediaTime, right: MediaTime) throws(MediaError) -> MediaTime {
    let scales = CommonTimescale(left, right)
    let sum = Int128(left.value) * scales.left + Int128(right.value) * scales.right
    guard let time = scales.time(sum) else { throw .overflow("the sum of \(left) and \(right)") }
    return time
  }

  /// The difference, exactly, spelled as the sum is.
  ///
  /// - Throws: `MediaError` with `.overflow` when no value and timescale hold it.
  public static func - (left: MediaTime, right: MediaTime) throws(MediaError) -> MediaTime {
    let scales = CommonTimescale(left, right)
    let difference = Int128(left.value) * scales.left - Int128(right.value) * scales.right
    guard let time = scales.time(difference) else {
      throw .overflow("the difference of \(left) and \(right)")
    }
    return time
  }

  /// The product with a fraction, exactly.
  ///
  /// - Throws: `MediaError` with `.overflow` when no value and timescale hold it.
  public func multiplied(by factor: Rational) throws(MediaError) -> MediaTime {
    try MediaTime(seconds.multiplied(by: factor))
  }
}

/// The least timescale that holds the units of two times, as CMTime's sums have it.
private struct CommonTimescale {
  /// Common units per second, below 2^62.
  let unitsPerSecond: Int128
  /// How many common units make a unit of either time, below 2^31.
  let left: Int128
  let right: Int128

  init(_ left: MediaTime, _ right: MediaTime) {
    let shared = greatestCommonDivisor(UInt128(left.timescale), UInt128(right.timescale))
    self.left = Int128(right.timescale) / Int128(shared)
    self.right = Int128(left.timescale) / Int128(shared)
    unitsPerSecond = Int128(left.timescale) * self.left
  }

  /// The time of so many common units, or nil where no value and timescale hold it.
  func time(_ units: Int128) -> MediaTime? {
    if let value = Int64(exactly: units), let timescale = Int32(exactly: unitsPerSecond) {
      return MediaTime(unchecked: value, timescale)
    }
    let seconds = Rational(reducing: units, unitsPerSecond)
    guard let value = Int64(exactly: seconds.numerator),
      let timescale = Int32(exactly: seconds.denominator)
    else { return nil }
    return MediaTime(unchecked: value, timescale)
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
