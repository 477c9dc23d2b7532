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

  private static func padded(_ number: UInt128, to width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }

  /// The seconds exactly, as the written syntax has them: `1.25`, or `1/3` where more than nine
  /// decimals would be needed.
  public var secondsText: String {
    let seconds = seconds
    let (whole, rest) = seconds.numerator.quotientAndRemainder(dividingBy: seconds.denominator)
    guard rest != 0 else { return "\(whole)" }
    let billion: Int128 = 1_000_000_000
    guard billion % seconds.denominator == 0 else { return seconds.description }
    let nanoseconds = rest.magnitude * (billion / seconds.denominator).magnitude
    var decimals = Self.padded(nanoseconds, to: 9)
    while decimals.last == "0" { decimals.removeLast() }
    return "\(value < 0 ? "-" : "")\(whole.magnitude).\(decimals)"
  }
}

extension TimeRange {
  /// The range in seconds exactly, as the written syntax has it: `1.2..1.5`.
  public var secondsText: String { "\(start.secondsText)..\(end.secondsText)" }
}
