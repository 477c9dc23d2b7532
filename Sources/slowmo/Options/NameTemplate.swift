// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem

/// A file name with fields to fill in, such as `{index:06}`, `{us}` and `{name}`.
struct NameTemplate {
  /// What a field stands for.
  enum Value {
    case text(String)
    /// Written with zeros before it, up to the width that the template says.
    case number(Int64)
  }

  private enum Part {
    case text(String)
    case field(String, width: Int)
  }

  private let parts: [Part]

  /// Reads a template.
  ///
  /// - Parameters:
  ///   - template: The name; what stands in braces is a field, behind a colon its width.
  ///   - fields: The fields that there are.
  /// - Throws: `CommandError` for a field that there is none of.
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
          "there is no field {\(field)} for names of files",
          hint: "there are \(fields.map { "{\($0)}" }.joined(separator: ", ")), and widths such as "
            + "{\(fields[0]):06}")
      }
      parts.append(.field(name, width: width))
      rest = rest[rest.index(after: close)...]
    }
    parts.append(.text(String(rest)))
    self.parts = parts
  }

  /// Whether names differ where a field does.
  func holds(_ field: String) -> Bool {
    parts.contains { if case .field(field, _) = $0 { true } else { false } }
  }

  /// The name with its fields filled in; fields that are not given stay empty.
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

  /// The name of a file without its folder and extension.
  static func stem(of path: String) -> String {
    let file = path.lastPathComponent
    return file.lastIndex(of: ".").map { String(file[..<$0]) } ?? file
  }
}
