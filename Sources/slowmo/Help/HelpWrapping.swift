// SPDX-License-Identifier: Apache-2.0

/// Wraps help text at the width of a terminal, without breaking words.
enum HelpWrapping {
  /// Wraps words.
  ///
  /// - Parameters:
  ///   - text: The words; any white space separates words.
  ///   - width: The maximum length of a line, unless a word alone is longer.
  ///   - first: The text before the words of the first line.
  ///   - indent: The text before the words of all other lines.
  /// - Returns: The lines; only `first` if the text has no words.
  static func wrap(
    _ text: some StringProtocol, width: Int, first: String = "", indent: String = ""
  ) -> [String] {
    var lines: [String] = []
    var line = first
    var isEmpty = true
    for word in text.split(whereSeparator: \.isWhitespace) {
      if !isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = indent
        isEmpty = true
      }
      line += isEmpty ? String(word) : " \(word)"
      isEmpty = false
    }
    return lines + [line]
  }

  /// Wraps paragraphs, which are separated by empty lines.
  ///
  /// An indented line is not joined with others. If it has a second column, after two spaces,
  /// wrapped text is indented to this column.
  static func paragraphs(_ lines: [String], width: Int) -> [String] {
    var result: [String] = []
    var paragraph: [String] = []
    func finished() -> [String] {
      paragraph.isEmpty ? [] : wrap(paragraph.joined(separator: " "), width: width)
    }
    for line in lines {
      if !line.isEmpty, !line.hasPrefix("  ") {
        paragraph.append(line)
        continue
      }
      result += finished()
      paragraph = []
      result += line.isEmpty ? [""] : columns(line, width: width)
    }
    return result + finished()
  }

  /// Wraps an indented line of two columns: a term and, after two spaces, its explanation.
  private static func columns(_ line: String, width: Int) -> [String] {
    let indent = String(line.prefix { $0 == " " })
    let content = line.dropFirst(indent.count)
    guard let gap = content.firstRange(of: "  ") else {
      return wrap(content, width: width, first: indent, indent: indent)
    }
    let meaning = content[gap.lowerBound...].drop { $0 == " " }
    let start = String(line.prefix(line.count - meaning.count))
    return wrap(
      meaning, width: width, first: start, indent: String(repeating: " ", count: start.count))
  }

  /// Wraps a command line at spaces outside quotes, and ends each wrapped line with a backslash.
  static func commandLine(_ line: String, width: Int) -> [String] {
    guard line.count > width else { return [line] }
    var words: [String] = []
    var word = ""
    var isQuoted = false
    for character in line.drop(while: { $0 == " " }) {
      if character == "'" { isQuoted.toggle() }
      if character == " ", !isQuoted {
        words.append(word)
        word = ""
      } else {
        word.append(character)
      }
    }
    words.append(word)
    var lines: [String] = []
    var current = "  "
    for (index, word) in words.enumerated() {
      let isLast = index == words.indices.last
      let length = current.count + 1 + word.count + (isLast ? 0 : 2)
      if index > 0, length > width {
        lines.append(current + " \\")
        current = "      " + word
      } else {
        current += index == 0 ? word : " \(word)"
      }
    }
    return lines + [current]
  }
}
