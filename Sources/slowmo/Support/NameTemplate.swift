// SPDX-License-Identifier: Apache-2.0

/// A file name with fields to fill in: `{index:06}`, `{us}`, `{ms}`, `{name}`.
struct NameTemplate {
  private enum Part {
    case text(String)
    case number(Field, width: Int)
    case name
  }
  private enum Field { case index, microseconds, milliseconds }

  private let parts: [Part]
  private let movieName: String

  /// Reads a template; `movie` is the path behind `{name}`.
  ///
  /// - Throws: `CommandError` for a field that there is none of.
  init(_ template: String, movie: String) throws {
    let file = movie.split(separator: "/").last.map(String.init) ?? movie
    movieName = file.lastIndex(of: ".").map { String(file[..<$0]) } ?? file
    var parts: [Part] = []
    var rest = Substring(template)
    while let open = rest.firstIndex(of: "{") {
      guard let close = rest[open...].firstIndex(of: "}") else { break }
      parts.append(.text(String(rest[..<open])))
      let field = rest[rest.index(after: open)..<close]
      let pieces = field.split(separator: ":", omittingEmptySubsequences: false)
      let width = pieces.count > 1 ? Int(pieces[1]) : 0
      let kind: Field? =
        switch pieces.first {
        case "index": .index
        case "us": .microseconds
        case "ms": .milliseconds
        default: nil
        }
      if field == "name" {
        parts.append(.name)
      } else if let kind, let width, (0...20).contains(width), pieces.count <= 2 {
        parts.append(.number(kind, width: width))
      } else {
        throw CommandError.usage(
          "there is no field {\(field)} for names of files",
          hint: "there are {index:06}, {us}, {ms} and {name}")
      }
      rest = rest[rest.index(after: close)...]
    }
    parts.append(.text(String(rest)))
    self.parts = parts
  }

  /// The name for a frame; its time is rounded down to the unit.
  func name(index: Int, nanoseconds: Int64) -> String {
    parts.map { part in
      switch part {
      case .text(let text): return text
      case .name: return movieName
      case .number(let field, let width):
        let value =
          switch field {
          case .index: Int64(index)
          case .microseconds: nanoseconds / 1_000
          case .milliseconds: nanoseconds / 1_000_000
          }
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
      }
    }.joined()
  }
}
