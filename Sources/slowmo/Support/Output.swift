// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import Glibc

/// Standard output for data, standard error for everything else.
enum Output {
  /// Writes a line of data; a reader that went away is not an error of ours, and answers false.
  @discardableResult
  static func line(_ text: String) -> Bool {
    write(Array((text + "\n").utf8), to: STDOUT_FILENO)
  }

  /// Writes a line for people.
  static func note(_ text: String) { write(Array((text + "\n").utf8), to: STDERR_FILENO) }

  /// Writes exactly one JSON document.
  static func document(_ document: some Encodable) throws {
    line(String(decoding: try encode(document, isPretty: true), as: UTF8.self))
  }

  /// A document's bytes: keys in snake case and in order, so that two runs can be compared.
  static func encode(_ document: some Encodable, isPretty: Bool) throws -> Data {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
    return try encoder.encode(document)
  }

  /// Writes all bytes, however often the system must be asked; false where it refuses.
  @discardableResult
  static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    bytes.withUnsafeBytes { buffer in
      var place = 0
      while place < buffer.count, let start = buffer.baseAddress {
        let count = Glibc.write(descriptor, start + place, buffer.count - place)
        guard count >= 0 || errno == EINTR else { return false }
        place += max(0, count)
      }
      return true
    }
  }
}

/// A value that is written as `null` when it is unknown, instead of being left out.
@propertyWrapper
struct Nullable<Value: Encodable>: Encodable {
  var wrappedValue: Value?

  init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}

/// What a document says when its verb failed.
struct ErrorDetails: Encodable {
  let code: String
  let message: String
  let hint: String

  init(_ error: CommandError) {
    code = error.code
    message = error.message
    hint = error.hint
  }
}

/// The document of a verb that failed before it had anything else to say.
struct ErrorDocument: Encodable {
  let schema: String
  let error: ErrorDetails

  init(verb: String, _ error: CommandError) {
    schema = schemaName(verb)
    self.error = ErrorDetails(error)
  }
}

/// The name and number of a verb's schema.
func schemaName(_ verb: String) -> String { "slowmo.\(verb)/1" }
