// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Encodes a value as JSON and decodes it again.
public func throughJSON<Value: Codable>(_ value: Value) throws -> Value {
  try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
}

/// Decodes JSON text.
public func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
  try JSONDecoder().decode(type, from: Data(text.utf8))
}
