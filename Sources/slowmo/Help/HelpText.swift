// SPDX-License-Identifier: Apache-2.0

/// The parts of a command's discussion.
///
/// A discussion begins with a line `EXAMPLES`, indented examples and an explanation. After a line
/// `MANUAL` follow further examples and details, which only the manual page and `slowmo help` show.
struct HelpText {
  private(set) var examples: [String] = []
  private(set) var explanation: [String] = []
  private(set) var furtherExamples: [String] = []
  private(set) var details: [String] = []

  init(_ discussion: String) {
    let lines = discussion.split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
    let end = lines.firstIndex(of: "MANUAL") ?? lines.endIndex
    (examples, explanation) = Self.parts(lines[..<end].drop { $0 == "EXAMPLES" })
    (furtherExamples, details) = Self.parts(lines[end...].dropFirst())
  }

  /// Separates the indented lines at the beginning from the lines after them.
  private static func parts(_ lines: ArraySlice<String>) -> ([String], [String]) {
    let examples = lines.prefix { $0.hasPrefix("  ") }
    var others = lines.dropFirst(examples.count).drop { $0.isEmpty }
    while others.last?.isEmpty == true { others.removeLast() }
    return (Array(examples), Array(others))
  }
}
