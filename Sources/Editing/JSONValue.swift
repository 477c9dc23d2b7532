// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A JSON document as it stands, for a format whose objects say themselves what they are.
enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  /// A member of an object; nil for anything else.
  subscript(key: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members[key]
  }

  var string: String? {
    guard case .string(let text) = self else { return nil }
    return text
  }

  var number: Double? {
    guard case .number(let number) = self, number.isFinite else { return nil }
    return number
  }

  var bool: Bool? {
    guard case .bool(let value) = self else { return nil }
    return value
  }

  /// The elements of an array; none for anything else.
  var elements: [JSONValue] {
    guard case .array(let elements) = self else { return [] }
    return elements
  }
}

extension JSONValue {
  /// Reads a document.
  ///
  /// `JSONDecoder` would have to be asked for one type after the other, with an error thrown for
  /// each that a value is not of.
  ///
  /// - Throws: The parser's own error, which tells the place.
  init(parsing data: Data) throws {
    self.init(try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed))
  }

  private init(_ value: Any) {
    switch value {
    case let text as String: self = .string(text)
    case let members as [String: Any]: self = .object(members.mapValues(JSONValue.init))
    case let elements as [Any]: self = .array(elements.map(JSONValue.init))
    case let number as NSNumber:
      // Only truth values are kept as a C `char`; numbers are so that fit their text.
      let isBool = String(cString: number.objCType) == "c"
      self = isBool ? .bool(number.boolValue) : .number(number.doubleValue)
    default: self = .null
    }
  }
}

extension JSONValue: Encodable {
  func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    switch self {
    case .null: try value.encodeNil()
    case .bool(let bool): try value.encode(bool)
    case .number(let number): try value.encode(number)
    case .string(let text): try value.encode(text)
    case .array(let elements): try value.encode(elements)
    case .object(let members): try value.encode(members)
    }
  }
}
