// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A JSON value of any type, for formats whose objects state their own type.
enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  /// Returns a member of an object; nil for other values.
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

  /// The elements of an array; empty for other values.
  var elements: [JSONValue] {
    guard case .array(let elements) = self else { return [] }
    return elements
  }
}

extension JSONValue: Decodable {
  /// Parses JSON or JSON5.
  ///
  /// JSON5 is needed because OpenTimelineIO writes `Infinity` and `NaN`, and LosslessCut writes
  /// names without quotes.
  ///
  /// - Throws: The error of the parser.
  init(parsing text: String) throws {
    let decoder = JSONDecoder()
    decoder.allowsJSON5 = true
    do {
      self = try decoder.decode(JSONValue.self, from: Data(text.utf8))
    } catch {
      // OpenTimelineIO's parser also accepts `Inf`, which JSON5 does not define.
      guard let spelled = Self.spellingInfinity(Array(text.utf8)) else { throw error }
      self = try decoder.decode(JSONValue.self, from: spelled)
    }
  }

  /// Returns the text with each `Inf` outside strings replaced by `Infinity`; nil if there is none.
  private static func spellingInfinity(_ text: [UInt8]) -> Data? {
    let name = Array("Inf".utf8)
    var spelled = Data()
    var (isInString, isEscaped, found) = (false, false, false)
    for (index, byte) in text.enumerated() {
      spelled.append(byte)
      if isEscaped {
        isEscaped = false
      } else if isInString, byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isInString.toggle()
      } else if !isInString, byte == name[2], index >= 2, text[index - 2...index] == name[...],
        index + 1 == text.count || text[index + 1] != UInt8(ascii: "i")
      {
        spelled.append(contentsOf: "inity".utf8)
        found = true
      }
    }
    return found ? spelled : nil
  }

  init(from decoder: any Decoder) throws {
    // The decoder cannot report a value's type, so each type is tried until one succeeds. The most
    // frequent types come first.
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
    } else if let text = try? value.decode(String.self) {
      self = .string(text)
    } else if let number = try? value.decode(Double.self) {
      self = .number(number)
    } else if let members = try? decoder.container(keyedBy: Key.self) {
      var object: [String: JSONValue] = [:]
      for key in members.allKeys {
        object[key.stringValue] = try members.decode(JSONValue.self, forKey: key)
      }
      self = .object(object)
    } else if var elements = try? decoder.unkeyedContainer() {
      var array: [JSONValue] = []
      while !elements.isAtEnd { array.append(try elements.decode(JSONValue.self)) }
      self = .array(array)
    } else {
      self = .bool(try value.decode(Bool.self))
    }
  }

  private struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
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
