// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Overcrank

/// Encodes values as the command's JSON documents.
///
/// All documents share these rules, so values from the libraries can be encoded without conversion.
///
/// | Value | JSON |
/// |---|---|
/// | key | snake case |
/// | nil, a number that is not finite | `null`; only an absent error is left out |
/// | `MediaTime`, `Duration` | integer nanoseconds, with `_ns` added to the key |
/// | `FrameRate`, `Speed`, `Rational` | exact fraction; a number under the same key plus `_value` |
///
/// If a key is written twice, the last value counts. A document can therefore write a report and
/// then replace some of the report's values.
enum DocumentEncoder {
  /// Returns the JSON tree of a document, with its keys in their final form.
  static func tree(of document: some Encodable) throws -> JSONTree {
    let node = TreeEncoder(codingPath: [])
    try document.encode(to: node)
    return node.node.tree
  }
}

/// A complete JSON value.
///
/// The keys of its objects have their final spelling.
enum JSONTree: Encodable {
  case null
  case leaf(any Encodable)
  case array([JSONTree])
  case object([String: JSONTree])

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .leaf(let value): try container.encode(value)
    case .array(let elements): try container.encode(elements)
    case .object(let members): try container.encode(members)
    }
  }
}

/// A JSON value that is being built.
///
/// All encoding containers that write this value share the node.
private final class Node {
  private var leaf = JSONTree.null
  private var elements: [Node]?
  private var members: [String: Node]?

  var tree: JSONTree {
    if let members { return .object(members.mapValues(\.tree)) }
    if let elements { return .array(elements.map(\.tree)) }
    return leaf
  }

  func becomeObject() { members = members ?? [:] }
  func becomeArray() { elements = elements ?? [] }

  /// Stores a value if it is a leaf.
  ///
  /// Returns true if it was stored, and false if the value must encode itself through containers.
  func set(_ value: some Encodable) -> Bool {
    switch value {
    // JSON can represent neither NaN nor infinity.
    case let number as any BinaryFloatingPoint where !number.isFinite: leaf = .null
    case is String, is Bool, is any BinaryInteger & Encodable,
      is any BinaryFloatingPoint & Encodable:
      leaf = .leaf(value)
    default: return false
    }
    return true
  }

  func member(_ key: String) -> Node {
    let node = Node()
    members?[key] = node
    return node
  }

  func element() -> Node {
    let node = Node()
    elements?.append(node)
    return node
  }

  var count: Int { elements?.count ?? 0 }
}

private struct TreeEncoder: Encoder {
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }
  var node = Node()

  func container<Key: CodingKey>(keyedBy: Key.Type) -> KeyedEncodingContainer<Key> {
    node.becomeObject()
    return KeyedEncodingContainer(Members(encoder: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    node.becomeArray()
    return Elements(encoder: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { Single(encoder: self) }

  func at(_ key: (any CodingKey)?, _ node: Node) -> TreeEncoder {
    TreeEncoder(codingPath: codingPath + [key].compactMap { $0 }, node: node)
  }

  func encode(_ value: some Encodable) throws {
    if let members = value as? [String: any Encodable] {
      // Keys of a dictionary are data, so they are not converted to snake case.
      node.becomeObject()
      for (key, member) in members { try at(nil, node.member(key)).encode(member) }
    } else if !node.set(value) {
      try value.encode(to: self)
    }
  }
}

private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: TreeEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }

  private func member(_ key: Key, _ unit: String = "") -> TreeEncoder {
    encoder.at(key, encoder.node.member(snakeCase(key.stringValue) + unit))
  }

  func encodeNil(forKey key: Key) { _ = member(key) }

  func encode(_ value: some Encodable, forKey key: Key) throws {
    switch value {
    case let time as MediaTime: try member(key, "_ns").encode(time.wholeNanoseconds)
    case let time as Duration: try member(key, "_ns").encode(time.wholeNanoseconds)
    case let number as any ExactNumber:
      try member(key).encode(number.description)
      try member(key, "_value").encode(number.doubleValue)
    default: try member(key).encode(value)
    }
  }

  func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) throws {
    try set(value, key)
  }

  // The default implementations would omit nil, but these documents write it as `null`.
  func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: String?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try set(value, key) }
  func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try set(value, key) }

  private func set<Value: Encodable>(_ value: Value?, _ key: Key) throws {
    if let value { return try encode(value, forKey: key) }
    switch Value.self {
    case is MediaError.Type, is ErrorDetails.Type: break
    case is MediaTime.Type, is Duration.Type: _ = member(key, "_ns")
    case is any ExactNumber.Type:
      _ = member(key)
      _ = member(key, "_value")
    default: encodeNil(forKey: key)
    }
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> { member(key).container(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    member(key).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { encoder }
  func superEncoder(forKey key: Key) -> any Encoder { member(key) }
}

private struct Elements: UnkeyedEncodingContainer {
  let encoder: TreeEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }
  var count: Int { encoder.node.count }

  private func element() -> TreeEncoder { encoder.at(nil, encoder.node.element()) }

  func encodeNil() { _ = element() }
  func encode(_ value: some Encodable) throws { try element().encode(value) }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) -> KeyedEncodingContainer<Nested> { element().container(keyedBy: type) }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { element().unkeyedContainer() }
  func superEncoder() -> any Encoder { element() }
}

private struct Single: SingleValueEncodingContainer {
  let encoder: TreeEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }

  func encodeNil() {}
  func encode(_ value: some Encodable) throws { try encoder.encode(value) }
}

/// A number whose exact form is a fraction, so that its `Double` is only an approximation.
private protocol ExactNumber: CustomStringConvertible {
  var doubleValue: Double { get }
}

extension FrameRate: ExactNumber {}
extension Rational: ExactNumber {}
extension Speed: ExactNumber {
  fileprivate var doubleValue: Double { fraction.doubleValue }
}

/// Converts a Swift name to snake case: `durationNs` becomes `duration_ns`.
private func snakeCase(_ name: String) -> String {
  var result = ""
  for character in name {
    if character.isUppercase { result.append("_") }
    result += character.lowercased()
  }
  return result
}

/// A document that can also be printed as text lines.
protocol TextDocument {
  /// The lines of text.
  var lines: [String] { get }
}
