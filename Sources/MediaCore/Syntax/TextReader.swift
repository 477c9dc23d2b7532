// SPDX-License-Identifier: Apache-2.0

/// Reads the numbers of the written syntaxes from the front of a text, byte by byte.
///
/// Only the ten ASCII digits are digits. What is not there is answered with nil or false and
/// leaves the text as it was; what is there but fits no number is an error.
struct TextReader {
  private var rest: Substring.UTF8View

  init(_ text: Substring) { rest = text.utf8 }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ literal: String) -> Bool {
    guard rest.starts(with: literal.utf8) else { return false }
    rest = rest.dropFirst(literal.utf8.count)
    return true
  }

  /// One digit or more.
  mutating func takeDigits() -> Substring.UTF8View? {
    let digits = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard !digits.isEmpty else { return nil }
    rest = rest[digits.endIndex...]
    return digits
  }

  /// The digits behind a point; a point without digits is left alone.
  mutating func takeDecimals() -> Substring.UTF8View? {
    var ahead = self
    guard ahead.take("."), let digits = ahead.takeDigits() else { return nil }
    self = ahead
    return digits
  }

  /// `12`, `0.125`, and `1/8` where fractions are allowed; without a sign.
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

  /// The number that a row of digits means, however many zeros lead it.
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

  /// The number `whole.decimals`.
  ///
  /// It fits when all digits read as one whole number fit 127 bits, and no more than 38 stand
  /// behind the point; zeros at either end do not count.
  static func rational(
    _ whole: Substring.UTF8View, decimals: Substring.UTF8View
  ) throws(MediaError) -> Rational {
    var decimals = decimals
    while decimals.last == UInt8(ascii: "0") { decimals = decimals.dropLast() }
    // The 38th power of ten is the last one below 2^127.
    guard decimals.count <= 38 else { throw .overflow("it") }
    var denominator: Int128 = 1
    for _ in decimals { denominator *= 10 }
    return try Rational(wholeNumber(whole, decimals), over: denominator)
  }
}

extension Rational {
  /// Reads `3`, `0.125` or `1/8`, each with an optional `-` in front, exactly.
  ///
  /// What ``description`` prints reads back equal, but for a numerator of -2^127.
  ///
  /// - Throws: `MediaError` with `.syntax` for other text, `.notPositive` for a fraction over
  ///   zero, `.overflow` when the number does not fit.
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
  /// The same failure, told of the text in which it was found.
  func about(_ text: String, as kind: String) -> MediaError {
    MediaError(code, "\(Self.quoted(text)) is not \(kind): \(description)")
  }

  /// Text between quotation marks, short, on one line, and with nothing invisible in it.
  private static func quoted(_ text: String) -> String {
    let limit = 40
    var shown = "\""
    for scalar in text.unicodeScalars.prefix(limit) {
      let isInvisible =
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: true
        // An accent in front of everything would sit on the quotation mark.
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
