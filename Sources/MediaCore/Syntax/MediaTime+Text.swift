// SPDX-License-Identifier: Apache-2.0

extension MediaTime {
  /// The time for people, as on a clock: `0:01.250`, `1:02.500`, `1:00:02.500`.
  ///
  /// Hours show from one hour on. A time that is not negative reads back by
  /// ``init(parsing:)``, less what was rounded.
  ///
  /// - Parameters:
  ///   - decimals: How many digits follow the seconds, from 0 to 9.
  ///   - rounding: How what those digits cannot show is rounded.
  /// - Returns: The text, in ASCII.
  public func clock(decimals: Int = 3, rounding: TimeRounding) -> String {
    precondition((0...9).contains(decimals), "a clock shows from 0 to 9 decimals")
    var unitsPerSecond: Int128 = 1
    for _ in 0..<decimals { unitsPerSecond *= 10 }
    // 64 and 30 bits: the product always fits 128.
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

  /// The seconds exactly, as the written syntax has them: `1.25`, or `1/3` where more than nine
  /// decimals would be needed.
  public var secondsText: String { seconds.exactDecimals ?? seconds.description }

  /// The seconds for people: `1.25`, or `0.033367` where more than nine decimals would be needed,
  /// rounded to the nearest microsecond.
  public var displayText: String { seconds.displayText }

  /// The seconds for people who may write them again: `0.4 s`, or `0.033367 s (1001/30000)` where
  /// the decimals are rounded.
  public var exactDisplayText: String { seconds.exactDisplayText }

  fileprivate static func padded(_ number: UInt128, to width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }
}

extension Rational {
  /// The number for people, as ``MediaTime/displayText`` has it.
  public var displayText: String {
    guard isValid else { return description }
    if let exactDecimals { return exactDecimals }
    let microseconds = try? (self * 1_000_000).rounded(.halfAwayFromZero)
    guard let microseconds, microseconds != 0 else { return "\(doubleValue)" }
    return Self.decimals(microseconds, count: 6)
  }

  /// The number as seconds for people, as ``MediaTime/exactDisplayText`` has it.
  public var exactDisplayText: String {
    "\(displayText) s" + (exactDecimals == nil ? " (\(self))" : "")
  }

  /// The number in nine decimals or fewer; nil where those do not say it.
  fileprivate var exactDecimals: String? {
    let billion: Int128 = 1_000_000_000
    guard isValid, billion % denominator == 0 else { return nil }
    let scaled = numerator.multipliedReportingOverflow(by: billion / denominator)
    guard !scaled.overflow else { return nil }
    var text = Self.decimals(scaled.partialValue, count: 9)
    while text.last == "0" { text.removeLast() }
    if text.last == "." { text.removeLast() }
    return text
  }

  /// A number of units, of which the tenth power of `count` is one.
  private static func decimals(_ units: Int128, count: Int) -> String {
    var unit: UInt128 = 1
    for _ in 0..<count { unit *= 10 }
    let (whole, rest) = units.magnitude.quotientAndRemainder(dividingBy: unit)
    return "\(units < 0 ? "-" : "")\(whole).\(MediaTime.padded(rest, to: count))"
  }
}

extension TimeRange {
  /// The range in seconds exactly, as the written syntax has it: `1.2..1.5`.
  public var secondsText: String { "\(start.secondsText)..\(end.secondsText)" }

  /// The range in seconds for people, as ``MediaTime/displayText`` has them.
  public var displayText: String { "\(start.displayText)..\(end.displayText)" }
}
