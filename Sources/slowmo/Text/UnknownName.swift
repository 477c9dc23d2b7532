// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// Finds an unknown command or option in the arguments, and suggests the nearest known name.
enum UnknownName {
  /// Returns the error for the first unknown command or option in the arguments; nil if all are
  /// known.
  static func error(
    in arguments: [String], of root: any ParsableCommand.Type
  ) -> CommandError? {
    var command = root
    var names = [root._commandName]
    var left = arguments[...]
    while let word = left.first, !word.hasPrefix("-") {
      let verbs = command.configuration.subcommands
      guard !verbs.isEmpty else { break }
      guard let found = verbs.first(where: { $0._commandName == word }) else {
        return verb(word, among: verbs, of: names)
      }
      command = found
      names.append(word)
      left.removeFirst()
    }
    let options = (CommandDescription(command).arguments ?? []).filter { $0.kind != .positional }
    guard let word = firstUnknown(left, options) else { return nil }
    let name = String(word.prefix { $0 != "=" })
    let page = "\(names.joined(separator: " ")) --help"
    let known = options.compactMap(\.longName) + CommandDescription.builtIn
    let spellings = Set(known).map { "--\($0)" }.sorted()
    let nearest =
      name.hasPrefix("--")
      ? Spelling.nearest(to: name, among: spellings)
      : spellings.filter { $0.hasPrefix("-\(name)") }
    let hint =
      if !nearest.isEmpty {
        suggestion(nearest, page)
      } else if !command.configuration.subcommands.isEmpty {
        "write options after the verb: \(names.joined(separator: " ")) VERB \(name)"
      } else {
        "see \(page)"
      }
    return .usage("unknown option \(name)", hint: hint)
  }

  /// Returns the error for an unknown command.
  static func verb(
    _ word: String, among verbs: [any ParsableCommand.Type], of names: [String] = ["slowmo"]
  ) -> CommandError {
    let nearest = Spelling.nearest(to: word, among: verbs.map { $0._commandName })
    let page = "\(names.joined(separator: " ")) --help"
    return .usage(
      "unknown verb \(word)",
      hint: nearest.isEmpty ? "list the verbs with \(page)" : suggestion(nearest, page))
  }

  private static func suggestion(_ nearest: [String], _ page: String) -> String {
    "did you mean \(choice(of: nearest))? See \(page)"
  }

  /// Joins names: `a`, `a or b`, `a, b or c`.
  static func choice(of names: [String]) -> String {
    guard let last = names.last, names.count > 1 else { return names.first ?? "" }
    return "\(names.dropLast().joined(separator: ", ")) or \(last)"
  }

  /// Returns the first option in the arguments that the command does not have; the values of the
  /// command's options are skipped.
  private static func firstUnknown(
    _ arguments: ArraySlice<String>, _ options: [CommandDescription.Argument]
  ) -> String? {
    var left = arguments.prefix { $0 != "--" }
    let builtIn = (CommandDescription.builtIn + hidden).map { "--\($0)" } + ["-h"]
    while let word = left.popFirst() {
      guard word.hasPrefix("-"), word != "-" else { continue }
      let name = String(word.prefix { $0 != "=" })
      if let option = options.first(where: { $0.spellings.contains(name) }) {
        if option.kind == .option, name == word, let next = left.first,
          option.takesAnyWord || !next.hasPrefix("-") || next == "-"
        {
          left.removeFirst()
        }
      } else if !builtIn.contains(name), !isShort(name, options) {
        return word
      }
    }
    return nil
  }

  /// Options of the argument parser that are not listed in the help text.
  private static let hidden = [
    "help-hidden", "experimental-dump-help", String(CompletionScript.request.dropFirst(2)),
  ]

  /// Whether a word is a negative number, or a group of one-letter options.
  private static func isShort(_ name: String, _ options: [CommandDescription.Argument]) -> Bool {
    guard !name.hasPrefix("--") else { return false }
    let letters = name.dropFirst()
    let known = options.flatMap(\.spellings) + ["-h"]
    return letters.first?.isNumber == true || letters.allSatisfy { known.contains("-\($0)") }
  }
}
