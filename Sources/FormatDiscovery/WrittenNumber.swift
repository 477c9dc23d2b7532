// SPDX-License-Identifier: Apache-2.0
import MediaTiming

extension Rational {
  /// Reads `30`, `59.94` or `60000/1001`, exactly; nil for other text and for what does not fit.
  init?(written text: some StringProtocol) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2 {
      guard let above = Self.whole(parts[0]), let below = Self.whole(parts[1]),
        let fraction = try? Rational(above, below)
      else { return nil }
      self = fraction
      return
    }
    let digits = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let decimals = digits.count == 2 ? String(digits[1]) : ""
    guard decimals.utf8.count <= 9, digits.count == 1 || !decimals.isEmpty,
      let whole = Self.whole(digits[0]), let units = Self.whole(digits[0] + decimals), whole >= 0
    else { return nil }
    let scale = decimals.utf8.reduce(Int128(1)) { scale, _ in scale * 10 }
    guard let number = try? Rational(units, scale) else { return nil }
    self = number
  }

  /// Digits alone, and not so many that anything overflows.
  private static func whole(_ text: some StringProtocol) -> Int128? {
    guard (1...27).contains(text.utf8.count),
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int128(text)
  }
}

extension FrameRate {
  /// Reads a rate; the usual decimal numbers mean n·1000/1001. Nil for other text.
  init?(written text: some StringProtocol) {
    let broadcast: [String: Int128] = [
      "23.976": 24, "23.98": 24, "29.97": 30, "47.952": 48, "59.94": 60, "119.88": 120,
      "239.76": 240,
    ]
    let exact = broadcast[String(text)].flatMap { try? Rational($0 * 1000, 1001) }
    guard let number = exact ?? Rational(written: text), let rate = try? FrameRate(number) else {
      return nil
    }
    self = rate
  }
}
