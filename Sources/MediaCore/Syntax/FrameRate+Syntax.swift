// SPDX-License-Identifier: Apache-2.0

extension FrameRate {
  /// Parses a frame rate: `240`, `59.94`, `60000/1001`.
  ///
  /// The decimals 23.976, 23.98, 29.97, 47.952, 59.94, 119.88 and 239.76 stand for broadcast rates
  /// such as 24000/1001. Every other decimal stands for exactly its value.
  ///
  /// - Throws: `MediaError` with `.syntax` for text that is not a rate, `.notPositive` for a rate
  ///   of zero or below, `.overflow` when the lowest terms do not fit 32 bits.
  public init(parsing text: String) throws(MediaError) {
    do throws(MediaError) {
      var reader = TextReader(text[...])
      let isNegative = reader.take("-")
      guard let number = try reader.takeNumber(), reader.isAtEnd else {
        throw MediaError(.syntax, "write frames per second as 240, 59.94 or 60000/1001")
      }
      guard !isNegative, number > .zero else { throw .notAboveZero }
      let isDecimal = !text.utf8.contains(UInt8(ascii: "/"))
      let whole = isDecimal ? Self.broadcastRate(number) : nil
      try self.init(whole.map { Rational(reducing: $0 * 1000, 1001) } ?? number)
    } catch {
      throw error.about(text, as: "a frame rate")
    }
  }

  /// Returns n if a decimal stands for the rate n·1000/1001; nil if it stands for its own value.
  private static func broadcastRate(_ number: Rational) -> Int128? {
    switch (number.numerator, number.denominator) {
    case (2997, 125), (1199, 50): 24  // 23.976, 23.98
    case (2997, 100): 30  // 29.97
    case (5994, 125): 48  // 47.952
    case (2997, 50): 60  // 59.94
    case (2997, 25): 120  // 119.88
    case (5994, 25): 240  // 239.76
    default: nil
    }
  }
}

extension Speed {
  /// Parses a speed: `0.125`, `1/8`, `12.5%`.
  ///
  /// - Throws: `MediaError` with `.syntax` for text that is not a speed, `.notPositive` for a speed
  ///   of zero or below, `.overflow` when the fraction does not fit 128-bit integers.
  public init(parsing text: String) throws(MediaError) {
    do throws(MediaError) {
      var reader = TextReader(text[...])
      let isNegative = reader.take("-")
      var number = try reader.takeNumber(allowsFraction: !text.utf8.contains(UInt8(ascii: "%")))
      if reader.take("%") { number = number.map { $0 / 100 } }
      guard let number, reader.isAtEnd else {
        throw MediaError(.syntax, "write source seconds per output second as 0.125, 1/8 or 12.5%")
      }
      guard !isNegative, number > .zero else { throw .notAboveZero }
      try self.init(number)
    } catch {
      throw error.about(text, as: "a speed")
    }
  }
}

extension MediaError {
  fileprivate static let notAboveZero = MediaError(.notPositive, "it is not above zero")
}
