// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc

/// A help page of a command, as wide as the terminal.
struct HelpPage {
  /// The amount of detail of a help page.
  enum Extent {
    /// One screen: two examples and the most used options (`-h`).
    case brief
    /// All options (`--help`).
    case full
    /// All options, further examples and details, like the manual page (`slowmo help`).
    case manual
  }

  /// The words of the command as typed, with its parent commands.
  private let path: [String]
  private let command: any ParsableCommand.Type
  private let description: CommandDescription
  private let text: HelpText
  private let extent: Extent
  private let width: Int

  /// Creates the help page that the program's arguments request.
  init(
    requestedBy arguments: [String], root: any ParsableCommand.Type,
    width: Int = TerminalWidth.columns
  ) {
    var path = [root._commandName]
    var command = root
    for argument in arguments.drop(while: { $0 == "help" }) {
      let next = command.configuration.subcommands.first { $0._commandName == argument }
      guard let next else { break }
      path.append(argument)
      command = next
    }
    (self.path, self.command, self.width) = (path, command, width)
    description = CommandDescription(command)
    text = HelpText(description.discussion ?? "")
    if arguments.first == "help" {
      extent = .manual
    } else {
      extent = arguments.contains("--help") ? .full : .brief
    }
  }

  /// The text of the page, without a line break after the last line.
  var rendered: String {
    let sections =
      switch extent {
      case .brief: brief
      case .full: full(text.examples, text.explanation)
      case .manual:
        full(
          text.examples + text.furtherExamples,
          text.explanation + (text.details.isEmpty ? [] : [""] + text.details))
      }
    return sections.filter { !$0.isEmpty }.map { $0.joined(separator: "\n") }
      .joined(separator: "\n\n")
  }

  private var name: String { path.joined(separator: " ") }
  private var isRoot: Bool { path.count == 1 }
  private var subcommands: [any ParsableCommand.Type] { command.configuration.subcommands }

  // MARK: - Sections

  private var brief: [[String]] {
    let most = HelpLayout.mostUsed[path.dropFirst().joined(separator: " ")] ?? []
    let options = most.compactMap { name in
      description.shownArguments.first { $0.longName == name }
    }
    let abstract = HelpWrapping.wrap(description.abstract ?? "", width: width)
    let others = description.shownArguments.contains { argument in
      argument.kind != .positional && !most.contains { $0 == argument.longName }
    }
    return [
      abstract, usage + positional.flatMap { row($0, isBrief: true) },
      examples(Array(text.examples.prefix(2))), subcommands.isEmpty ? [] : briefSubcommands,
      section(others ? "MOST USED OPTIONS" : "OPTIONS", options, isBrief: true), footer,
    ]
  }

  private func full(_ examples: [String], _ explanation: [String]) -> [[String]] {
    let overview = HelpWrapping.wrap("OVERVIEW: \(description.abstract ?? "")", width: width)
    return [
      overview, self.examples(examples), HelpWrapping.paragraphs(explanation, width: width), usage,
      section("ARGUMENTS", positional),
      subcommands.isEmpty ? [] : fullSubcommands,
    ] + groups + [footer]
  }

  private func examples(_ lines: [String]) -> [String] {
    guard !lines.isEmpty else { return [] }
    return ["EXAMPLES"] + lines.flatMap { HelpWrapping.commandLine($0, width: width) }
  }

  /// The synopsis: all required arguments, and one word for all options.
  private var usage: [String] {
    var parts = (subcommands.isEmpty ? [] : ["<verb>"]) + ["[options]"]
    let shown = description.shownArguments
    for argument in shown where argument.kind == .positional {
      let value = "<\(argument.valueName ?? "value")>" + (argument.isRepeating ? " ..." : "")
      parts.append(argument.isOptional ? "[\(value)]" : value)
    }
    for argument in shown where argument.kind != .positional && !argument.isOptional {
      let spelling = argument.spellings.last ?? ""
      parts.append("\(spelling) <\(argument.valueName ?? "value")>")
    }
    return HelpWrapping.wrap(
      parts.joined(separator: " "), width: width, first: "USAGE: \(name) ", indent: "         ")
  }

  private var positional: [CommandDescription.Argument] {
    description.shownArguments.filter { $0.kind == .positional }
  }

  /// The options in their groups.
  ///
  /// The last group has the options that all commands share.
  private var groups: [[String]] {
    var left = description.shownArguments.filter { $0.kind != .positional }
    var sections: [[String]] = []
    for group in HelpLayout.groups[path.dropFirst().joined(separator: " ")] ?? [] {
      let options = group.options.compactMap { name in left.first { $0.longName == name } }
      left.removeAll { option in group.options.contains { $0 == option.longName } }
      sections.append(section("\(group.title) OPTIONS", options))
    }
    let title = sections.isEmpty ? "OPTIONS" : "GENERAL OPTIONS"
    return sections + [section(title, left) + (left.isEmpty ? ["\(title):"] : []) + builtIn]
  }

  private func section(
    _ title: String, _ arguments: [CommandDescription.Argument], isBrief: Bool = false
  ) -> [String] {
    arguments.isEmpty ? [] : ["\(title):"] + arguments.flatMap { row($0, isBrief: isBrief) }
  }

  private var builtIn: [String] {
    row("--version", "Show the version.") + row("-h", "Show the most used options.")
      + row("--help", "Show all options.")
  }

  private var fullSubcommands: [String] {
    HelpLayout.verbGroups(of: subcommands, isRoot: isRoot).flatMap { title, verbs in
      ["\(title):"] + verbs.flatMap { row($0._commandName, $0.configuration.abstract) } + [""]
    }.dropLast()
  }

  private var briefSubcommands: [String] {
    let groups = HelpLayout.verbGroups(of: subcommands, isRoot: isRoot)
    guard groups.count > 1 else { return fullSubcommands }
    return ["VERBS:"]
      + groups.flatMap { title, verbs in
        row(
          title.capitalizedFirst, verbs.map { $0._commandName }.joined(separator: ", "),
          labelWidth: Self.briefLabelWidth)
      }
  }

  private var footer: [String] {
    let page = path.joined(separator: "-")
    let words = path.dropFirst().joined(separator: " ")
    let verb = subcommands.isEmpty ? words : (words.isEmpty ? "" : "\(words) ") + "VERB"
    let help = "slowmo help \(words.isEmpty ? "VERB" : words)"
    switch extent {
    case .brief where !subcommands.isEmpty:
      return HelpWrapping.wrap(
        "For one verb: slowmo \(verb) -h, slowmo \(verb) --help, or man slowmo-VERB.", width: width)
    case .brief:
      return HelpWrapping.wrap("All options: \(name) --help. Manual: \(help).", width: width)
    case .full where !subcommands.isEmpty:
      return HelpWrapping.wrap("For one verb: slowmo \(verb) --help", width: width)
    case .full where text.furtherExamples.isEmpty && text.details.isEmpty: return []
    case .full:
      return HelpWrapping.wrap(
        "More examples and details: \(help), or man \(page)", width: width)
    case .manual: return []
    }
  }

  // MARK: - Rows

  private func row(_ argument: CommandDescription.Argument, isBrief: Bool = false) -> [String] {
    var label = argument.spellings.joined(separator: ", ")
    if argument.kind == .positional || argument.kind == .option && !isBrief {
      label += (label.isEmpty ? "" : " ") + "<\(argument.valueName ?? "value")>"
    }
    return row(
      label, Self.meaning(argument, isBrief: isBrief),
      labelWidth: isBrief ? Self.briefLabelWidth : Self.labelWidth)
  }

  /// Returns the description of an argument, with its values and its default unless the description
  /// already names them.
  private static func meaning(
    _ argument: CommandDescription.Argument, isBrief: Bool
  ) -> String {
    let abstract = argument.abstract ?? ""
    if isBrief { return firstClause(of: abstract) }
    var parts = [abstract]
    if let values = argument.allValues, !values.allSatisfy({ abstract.contains($0) }) {
      parts.append("Values: \(values.joined(separator: ", ")).")
    }
    if let value = argument.defaultValue, !value.isEmpty, argument.kind == .option,
      !abstract.contains("efault")
    {
      parts.append("Default: \(value).")
    }
    return parts.joined(separator: " ")
  }

  private static func firstClause(of text: String) -> String {
    guard let end = text.firstMatch(of: /\. (?=[A-Z])|;/) else { return text }
    return "\(text[..<end.range.lowerBound])."
  }

  /// The width of the column of labels on a full page and on a brief page, and the page width below
  /// which labels are on separate lines.
  private static let labelWidth = 26
  private static let briefLabelWidth = 18
  private static let narrowWidth = 60

  private func row(
    _ label: String, _ meaning: String, labelWidth: Int = Self.labelWidth
  ) -> [String] {
    let label = "  \(label)"
    let isNarrow = width < Self.narrowWidth
    let indent = String(repeating: " ", count: isNarrow ? 6 : labelWidth)
    guard !meaning.isEmpty else { return [label] }
    guard !isNarrow, label.count < labelWidth else {
      return HelpWrapping.wrap(label, width: width, first: "  ", indent: "      ")
        + HelpWrapping.wrap(meaning, width: width, first: indent, indent: indent)
    }
    return HelpWrapping.wrap(
      meaning, width: width, first: label + indent.dropFirst(label.count), indent: indent)
  }
}

extension String {
  fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst().lowercased() }
}

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

/// The width in columns at which text for people is wrapped.
enum TerminalWidth {
  private static let minimum = 20
  private static let maximum = 1_000
  private static let standard = 80

  /// The value of `COLUMNS`, or the width of the terminal on standard output or standard error, or
  /// 80.
  static var columns: Int {
    let found =
      getenv("COLUMNS").flatMap { Int(String(cString: $0)) }.flatMap { $0 > 0 ? $0 : nil }
      ?? [STDOUT_FILENO, STDERR_FILENO].lazy.compactMap { TerminalScreen.size(of: $0)?.columns }
      .first
      ?? standard
    return min(max(found, minimum), maximum)
  }
}
