// SPDX-License-Identifier: Apache-2.0

/// A parser that reads numbers and words from the front of a text, for times, ranges, rates and
/// speeds.
///
/// Only the ten ASCII digits count as digits. If the expected token does not follow, a method
/// returns nil or false and consumes nothing. If a number does not fit, it throws.
struct TextReader {
  private var rest: Substring.UTF8View

  init(_ text: Substring) { rest = text.utf8 }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ literal: String) -> Bool {
    guard rest.starts(with: literal.utf8) else { return false }
    rest = rest.dropFirst(literal.utf8.count)
    return true
  }

  /// Consumes one or more digits.
  mutating func takeDigits() -> Substring.UTF8View? {
    let digits = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard !digits.isEmpty else { return nil }
    rest = rest[digits.endIndex...]
    return digits
  }

  /// Consumes a decimal point and the digits after it.
  ///
  /// A point without digits is not consumed.
  mutating func takeDecimals() -> Substring.UTF8View? {
    var ahead = self
    guard ahead.take("."), let digits = ahead.takeDigits() else { return nil }
    self = ahead
    return digits
  }

  /// Consumes an unsigned number: `12`, `0.125`, and `1/8` where fractions are allowed.
  mutating func takeNumber(allowsFraction: Bool = true) throws(MediaError) -> Rational? {
    guard let whole = takeDigits() else { return nil }
    if let decimals = takeDecimals() { return try Self.rational(whole, decimals: decimals) }
    var ahead = self
    if allowsFraction, ahead.take("/"), let below = ahead.takeDigits() {
      self = ahead
      let denominator = try Self.wholeNumber(below)
      guard denominator > 0 else { throw MediaError(.notPositive, "it divides by zero") }
      return try Rational(Self.wholeNumber(whole), over: denominator)
    }
    return try Rational(Self.wholeNumber(whole))
  }

  /// Returns the value of a sequence of digits; leading zeros are allowed.
  static func wholeNumber(_ digits: Substring.UTF8View...) throws(MediaError) -> Int128 {
    var number: Int128 = 0
    for digit in digits.joined() {
      let shifted = number.multipliedReportingOverflow(by: 10)
      let sum = shifted.partialValue.addingReportingOverflow(Int128(digit - UInt8(ascii: "0")))
      if shifted.overflow || sum.overflow { throw .overflow("it") }
      number = sum.partialValue
    }
    return number
  }

  /// Returns the number `whole.decimals`.
  ///
  /// The number fits if its digits without the point, read as one integer, fit 127 bits, and if at
  /// most 38 digits follow the point. Leading zeros and trailing zeros of the decimals do not
  /// count.
  static func rational(
    _ whole: Substring.UTF8View, decimals: Substring.UTF8View
  ) throws(MediaError) -> Rational {
    var decimals = decimals
    while decimals.last == UInt8(ascii: "0") { decimals = decimals.dropLast() }
    // The denominator is a power of ten, and 10^38 is the largest one below 2^127.
    guard decimals.count <= 38 else { throw .overflow("it") }
    var denominator: Int128 = 1
    for _ in decimals { denominator *= 10 }
    return try Rational(wholeNumber(whole, decimals), over: denominator)
  }
}

extension Rational {
  /// Parses `3`, `0.125` or `1/8`, each with an optional leading `-`, exactly.
  ///
  /// The text of ``description`` parses back to an equal number, unless the numerator is -2^127.
  ///
  /// - Throws: `MediaError` with `.syntax` for other text, `.notPositive` for a zero denominator,
  ///   `.overflow` when the number does not fit.
  public init(parsing text: String) throws(MediaError) {
    do throws(MediaError) {
      var reader = TextReader(text[...])
      let isNegative = reader.take("-")
      guard let number = try reader.takeNumber(), reader.isAtEnd else {
        throw MediaError(.syntax, "write it as 3, 0.125 or 1/8")
      }
      self = try (isNegative ? -number : number).checked("it")
    } catch {
      throw error.about(text, as: "a number")
    }
  }
}

extension MediaError {
  /// Returns the same error with a message that quotes the parsed text.
  func about(_ text: String, as kind: String) -> MediaError {
    MediaError(code, "\(Self.quoted(text)) is not \(kind): \(description)")
  }

  /// Quotes text in one line: at most 40 Unicode scalars, with invisible scalars escaped.
  private static func quoted(_ text: String) -> String {
    let limit = 40
    var shown = "\""
    for scalar in text.unicodeScalars.prefix(limit) {
      let isInvisible =
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: true
        // A combining accent at the start would be drawn on the quotation mark, so it is escaped.
        default: shown == "\"" && scalar.properties.isGraphemeExtend
        }
      if isInvisible {
        shown += scalar.escaped(asASCII: true)
      } else {
        shown.unicodeScalars.append(scalar)
      }
    }
    return text.unicodeScalars.dropFirst(limit).isEmpty ? "\(shown)\"" : "\(shown)…\""
  }
}
