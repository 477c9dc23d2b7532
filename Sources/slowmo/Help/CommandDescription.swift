// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials

/// The parser's description of a command and its options.
struct CommandDescription: Decodable {
  let abstract: String?
  let discussion: String?
  let arguments: [Argument]?

  struct Argument: Decodable {
    enum Kind: String, Decodable { case positional, option, flag }

    struct Name: Decodable {
      let kind: String
      let name: String

      var text: String { (kind == "long" ? "--" : "-") + name }
    }

    let kind: Kind
    let shouldDisplay: Bool
    let isOptional: Bool
    let isRepeating: Bool
    let parsingStrategy: String
    let names: [Name]?
    let valueName: String?
    let defaultValue: String?
    let allValues: [String]?
    let abstract: String?

    /// The name of the option after `--`; nil for a positional argument.
    var longName: String? { names?.first { $0.kind == "long" }?.name }

    /// The names of the option with their dashes, the short name first.
    var spellings: [String] { (names ?? []).map(\.text).sorted { $0.count < $1.count } }

    /// Whether the next argument is always the value, even if it begins with a dash.
    var takesAnyWord: Bool { parsingStrategy == "unconditional" }
  }

  /// Creates the description of a command, without the descriptions of its subcommands.
  init(_ command: any ParsableCommand.Type) {
    struct Tool: Decodable { let command: CommandDescription }
    let text = Data(command._dumpHelp().utf8)
    guard let tool = try? JSONDecoder().decode(Tool.self, from: text) else {
      preconditionFailure("the parser describes its commands in another form")
    }
    self = tool.command
  }

  /// The arguments that help shows, without the arguments that the parser adds to every command.
  var shownArguments: [Argument] {
    (arguments ?? []).filter { argument in
      argument.shouldDisplay && !Self.builtIn.contains { $0 == argument.longName }
    }
  }

  /// The options that every command has.
  static let builtIn = ["help", "version"]
}
