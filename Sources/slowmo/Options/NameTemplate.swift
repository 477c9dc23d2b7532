// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem

/// A file name template with fields such as `{index:06}`, `{us}` and `{name}`.
struct NameTemplate {
  /// The value of a field.
  enum Value {
    case text(String)
    /// A number, padded with zeros to the width in the template.
    case number(Int64)
  }

  private enum Part {
    case text(String)
    case field(String, width: Int)
  }

  private let parts: [Part]

  /// Parses a template.
  ///
  /// - Parameters:
  ///   - template: The template; a field is written `{name}` or `{name:width}`.
  ///   - fields: The names of the supported fields.
  /// - Throws: `CommandError` for an unknown field or an invalid width.
  init(_ template: String, fields: [String]) throws {
    var parts: [Part] = []
    var rest = Substring(template)
    while let open = rest.firstIndex(of: "{") {
      guard let close = rest[open...].firstIndex(of: "}") else { break }
      parts.append(.text(String(rest[..<open])))
      let field = rest[rest.index(after: open)..<close]
      let pieces = field.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
      let width = pieces.count > 1 ? Int(pieces[1]) : 0
      guard let name = pieces.first, fields.contains(name), let width, (0...20).contains(width),
        pieces.count <= 2
      else {
        throw CommandError.usage(
          "unknown field {\(field)} in the file name \(template)",
          hint: "use \(fields.map { "{\($0)}" }.joined(separator: ", ")), or a width such as "
            + "{\(fields[0]):06}")
      }
      parts.append(.field(name, width: width))
      rest = rest[rest.index(after: close)...]
    }
    parts.append(.text(String(rest)))
    self.parts = parts
  }

  /// Returns whether the template contains a field.
  func holds(_ field: String) -> Bool {
    parts.contains { if case .field(field, _) = $0 { true } else { false } }
  }

  /// Returns the file name, with all fields replaced by their values.
  ///
  /// A field without a value becomes empty.
  func name(_ values: [String: Value]) -> String {
    parts.map { part in
      switch part {
      case .text(let text): return text
      case .field(let name, let width):
        switch values[name] {
        case .text(let text): return text
        case .number(let number):
          let digits = String(number)
          return String(repeating: "0", count: max(0, width - digits.count)) + digits
        case nil: return ""
        }
      }
    }.joined()
  }
}
