// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials
import Overcrank

/// Suggests the verb or option that a misspelled one was meant to be.
enum Misspelling {
  /// Finds the word that made the parser reject the arguments.
  ///
  /// - Parameters:
  ///   - arguments: The arguments of the command.
  ///   - root: The root command.
  ///   - message: The parser's message. An option that it names already has its suggestion.
  /// - Returns: A usage error with the nearest names; nil if no name is near.
  static func correction(
    of arguments: [String], for root: any ParsableCommand.Type, _ message: String
  ) -> CommandError? {
    var command = root
    var names = ["slowmo"]
    for word in arguments {
      let verbs = command.configuration.subcommands
      guard !verbs.isEmpty, !word.hasPrefix("-") else { break }
      guard let found = verbs.first(where: { $0._commandName == word }) else {
        return error("verb", word, among: verbs.map { $0._commandName }, names)
      }
      command = found
      names.append(word)
    }
    let options = Self.options(of: command)
    for word in arguments.prefix(while: { $0 != "--" }) where word.hasPrefix("--") {
      let name = String(word.prefix { $0 != "=" })
      guard !options.contains(name), !message.contains(name) else { continue }
      return error("option", name, among: options, names)
    }
    return nil
  }

  private static func error(
    _ kind: String, _ word: String, among known: [String], _ command: [String]
  ) -> CommandError? {
    let nearest = Spelling.nearest(to: word, among: known)
    guard !nearest.isEmpty else { return nil }
    return .usage(
      "unknown \(kind) \(word)",
      hint: "did you mean \(nearest.joined(separator: " or "))? See "
        + "\(command.joined(separator: " ")) --help")
  }

  /// The long options of a command.
  private static func options(of command: any ParsableCommand.Type) -> [String] {
    let tool = try? JSONDecoder().decode(Tool.self, from: Data(command._dumpHelp().utf8))
    let names: [Tool.Name] = (tool?.command.arguments ?? []).flatMap { $0.names ?? [] }
    let long: [String] = names.filter { $0.kind == "long" }.map { "--\($0.name)" }
    return long + ["--help", "--version"]
  }

  /// The part of the parser's description of a command that names its options.
  private struct Tool: Decodable {
    struct Command: Decodable {
      let arguments: [Argument]?
    }
    struct Argument: Decodable {
      let names: [Name]?
    }
    struct Name: Decodable {
      let kind: String
      let name: String
    }
    let command: Command
  }
}
