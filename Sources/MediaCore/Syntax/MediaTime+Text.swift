// SPDX-License-Identifier: Apache-2.0

extension MediaTime {
  /// Returns the time in clock notation: `0:01.250`, `1:02.500`, `1:00:02.500`.
  ///
  /// Hours appear for times of one hour or more. For a time that is not negative,
  /// ``init(parsing:)`` reads the text back and returns the rounded time.
  ///
  /// - Parameters:
  ///   - decimals: Digits after the decimal point of the seconds, from 0 to 9.
  ///   - rounding: The rounding to those digits.
  /// - Returns: ASCII text.
  public func clock(decimals: Int = 3, rounding: TimeRounding) -> String {
    precondition((0...9).contains(decimals), "a clock shows from 0 to 9 decimals")
    var unitsPerSecond: Int128 = 1
    for _ in 0..<decimals { unitsPerSecond *= 10 }
    // The value has 64 bits, and a power of ten up to 10^9 has at most 30 bits. So their product
    // always fits 128 bits.
    let units = rounding.quotient(
      Int128(value) * unitsPerSecond, Int128(timescale),
      isFiner: unitsPerSecond > Int128(timescale))
    let (seconds, fraction) = units.magnitude.quotientAndRemainder(
      dividingBy: unitsPerSecond.magnitude)
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600)
    var text = units < 0 ? "-" : ""
    text += hours > 0 ? "\(hours):\(Self.padded(minutes, to: 2))" : "\(minutes)"
    text += ":\(Self.padded(seconds % 60, to: 2))"
    return decimals > 0 ? "\(text).\(Self.padded(fraction, to: decimals))" : text
  }

  /// The exact seconds as text that ``init(parsing:)`` reads back: `1.25`, or the fraction `1/3` if
  /// nine decimals are not enough.
  public var secondsText: String { seconds.exactDecimals ?? seconds.description }

  /// The seconds for display: `1.25`, or `0.033367` (nearest microsecond) where nine decimals are
  /// not enough.
  public var displayText: String { seconds.displayText }

  /// The seconds for display, with the exact fraction where the decimals are rounded: `0.4 s`,
  /// `0.033367 s (1001/30000)`.
  public var exactDisplayText: String { seconds.exactDisplayText }

  fileprivate static func padded(_ number: UInt128, to width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }
}

extension Rational {
  /// The number for display, in the format of ``MediaTime/displayText``.
  public var displayText: String {
    guard isValid else { return description }
    if let exactDecimals { return exactDecimals }
    let microseconds = try? (self * 1_000_000).rounded(.halfAwayFromZero)
    guard let microseconds, microseconds != 0 else { return "\(doubleValue)" }
    return Self.decimals(microseconds, count: 6)
  }

  /// The number as seconds for display, in the format of ``MediaTime/exactDisplayText``.
  public var exactDisplayText: String {
    "\(displayText) s" + (exactDecimals == nil ? " (\(self))" : "")
  }

  /// The exact number with at most nine decimals; nil where nine decimals are not enough.
  fileprivate var exactDecimals: String? {
    let billion: Int128 = 1_000_000_000
    guard isValid, billion % denominator == 0 else { return nil }
    let scaled = numerator.multipliedReportingOverflow(by: billion / denominator)
    guard !scaled.overflow else { return nil }
    return Self.decimals(scaled.partialValue, count: 9, trimsZeros: true)
  }

  /// Formats a number of units as a decimal with `count` digits after the point.
  ///
  /// One unit is 10^-`count`. With `trimsZeros`, the zeros at the end of the fraction are left out.
  package static func decimals(
    _ units: some BinaryInteger, count: Int, trimsZeros: Bool = false
  ) -> String {
    var unit: UInt128 = 1
    for _ in 0..<count { unit *= 10 }
    let (whole, rest) = UInt128(units.magnitude).quotientAndRemainder(dividingBy: unit)
    var text = "\(units < 0 ? "-" : "")\(whole)"
    if count > 0 { text += ".\(MediaTime.padded(rest, to: count))" }
    guard trimsZeros, count > 0 else { return text }
    while text.last == "0" { text.removeLast() }
    if text.last == "." { text.removeLast() }
    return text
  }
}

extension TimeRange {
  /// The exact range in seconds, as text that ``TimeRangeExpression/init(parsing:)`` reads:
  /// `1.2..1.5`.
  public var secondsText: String { "\(start.secondsText)..\(end.secondsText)" }

  /// The range in seconds for display, each side in the format of ``MediaTime/displayText``.
  public var displayText: String { "\(start.displayText)..\(end.displayText)" }
}
