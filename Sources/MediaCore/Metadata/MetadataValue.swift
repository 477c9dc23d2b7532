// SPDX-License-Identifier: Apache-2.0

/// The value of a metadata item.
public enum MetadataValue: Hashable, Sendable {
  /// A text.
  case text(String)
  /// A whole number.
  case integer(Int64)
  /// A number with a fraction.
  case number(Double)
}

extension MetadataValue: CustomStringConvertible {
  /// The text, or the number in decimal digits.
  public var description: String {
    switch self {
    case .text(let text): text
    case .integer(let number): "\(number)"
    case .number(let number): "\(number)"
    }
  }
}

extension MetadataValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral
{
  /// Makes a text.
  public init(stringLiteral text: String) { self = .text(text) }

  /// Makes a whole number.
  public init(integerLiteral number: Int64) { self = .integer(number) }

  /// Makes a number with a fraction.
  public init(floatLiteral number: Double) { self = .number(number) }
}

extension MetadataValue: Codable {
  /// Reads a JSON string or number.
  ///
  /// A number that is whole and fits 64 bits becomes ``integer(_:)``.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else {
      self = .number(try container.decode(Double.self))
    }
  }

  /// Writes a JSON string or number.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let text): try container.encode(text)
    case .integer(let number): try container.encode(number)
    case .number(let number): try container.encode(number)
    }
  }
}
