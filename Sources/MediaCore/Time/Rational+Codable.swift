// SPDX-License-Identifier: Apache-2.0

// Exact numbers are encoded as text, such as "1001/240000". As JSON numbers they would be rounded,
// because most JSON readers use binary floating point.

extension Rational: Codable {
  /// Decodes a fraction such as `"1/8"` or a whole number such as `"2"`.
  ///
  /// - Throws: `DecodingError` for anything else.
  public init(from decoder: any Decoder) throws {
    self = try decoder.fraction("a fraction") { Rational($0, over: $1) }
  }

  /// Encodes the fraction as `"1/8"`.
  ///
  /// - Throws: `EncodingError` for ``invalid``.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    guard isValid else {
      throw EncodingError.invalidValue(
        self, .init(codingPath: encoder.codingPath, debugDescription: "the number is invalid"))
    }
    try container.encode(description)
  }
}

extension MediaTime: Codable {
  /// Decodes a time such as `"1001/240000"`; the denominator becomes the timescale.
  ///
  /// - Throws: `DecodingError` for anything else, and for a number that does not fit.
  public init(from decoder: any Decoder) throws {
    self = try decoder.fraction("a time") { MediaTime(exactly: $0, over: $1) }
  }

  /// Encodes the value over the timescale, in seconds: `"1001/240000"`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension FrameRate: Codable {
  /// Decodes a rate such as `"60000/1001"`.
  ///
  /// - Throws: `DecodingError` for anything else, and for a rate of zero or below.
  public init(from decoder: any Decoder) throws {
    self = try decoder.fraction("a frame rate") { FrameRate(exactly: Rational($0, over: $1)) }
  }

  /// Encodes the rate as `"60000/1001"`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension Speed: Codable {
  /// Decodes a speed such as `"1/8"`.
  ///
  /// - Throws: `DecodingError` for anything else, and for a speed of zero or below.
  public init(from decoder: any Decoder) throws {
    self = try decoder.fraction("a speed") { Speed(exactly: Rational($0, over: $1)) }
  }

  /// Encodes the speed as `"1/8"`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension TimeRange: Codable {
  private enum CodingKeys: CodingKey { case start, end }

  /// Decodes the start and the end.
  ///
  /// - Throws: `DecodingError` for malformed input, and for an end before the start.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let start = try container.decode(MediaTime.self, forKey: .start)
    let end = try container.decode(MediaTime.self, forKey: .end)
    self = try decoder.checked { () throws(MediaError) in try TimeRange(start: start, end: end) }
  }

  /// Encodes the start and the end.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(start, forKey: .start)
    try container.encode(end, forKey: .end)
  }
}

extension Decoder {
  /// Decodes a text such as `1/8` or `2`, and makes a value from its numerator and denominator.
  ///
  /// The denominator is 1 for a text without one.
  fileprivate func fraction<Value>(
    _ kind: String, _ make: (Int128, Int128) -> Value?
  ) throws -> Value {
    let text = try singleValueContainer().decode(String.self)
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard let first = parts.first, parts.count <= 2, let numerator = Int128(first),
      let denominator = parts.count == 1 ? 1 : Int128(parts[1]), denominator > 0,
      let value = make(numerator, denominator)
    else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: codingPath, debugDescription: "\"\(text)\" is not \(kind)"))
    }
    return value
  }

  /// Makes a value from decoded parts.
  ///
  /// A `MediaError` is thrown as a `DecodingError`, which names the location in the document.
  package func checked<Value>(_ make: () throws(MediaError) -> Value) throws -> Value {
    do { return try make() } catch {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: codingPath, debugDescription: error.message, underlyingError: error))
    }
  }
}
