// SPDX-License-Identifier: Apache-2.0

/// Keys and what they do, for the help of a view.
package struct KeyDescription: Hashable, Sendable {
  /// The names of keys that belong together, such as `left right`.
  package let keys: String
  package let text: String

  package init(_ keys: String, _ text: String) { (self.keys, self.text) = (keys, text) }

  /// Returns a table with a line for each description, and the texts after a column of the given width.
  package static func table(_ lines: [KeyDescription], width: Int) -> String {
    lines.map { line in
      let space = String(repeating: " ", count: max(1, width - line.keys.count))
      return "  \(line.keys)\(space)\(line.text)"
    }
    .joined(separator: "\n")
  }
}
