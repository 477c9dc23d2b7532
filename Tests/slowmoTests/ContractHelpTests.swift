// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The help text of each command byte by byte, and the list of all options.
@Suite(.serialized)
struct ContractHelpTests {
  private static let pages: [(fixture: String, words: [String])] = [
    ("help/slowmo.txt", []), ("help/devices.txt", ["devices"]), ("help/modes.txt", ["modes"]),
    ("help/controls.txt", ["controls"]), ("help/record.txt", ["record"]),
    ("help/photo.txt", ["photo"]), ("help/info.txt", ["info"]),
    ("help/check.txt", ["check"]),
    ("help/retime.txt", ["retime"]), ("help/edit.txt", ["edit"]),
    ("help/frames.txt", ["frames"]), ("help/still.txt", ["still"]),
    ("help/compare.txt", ["compare"]), ("help/sync.txt", ["sync"]),
    ("help/track.txt", ["track"]), ("help/measure.txt", ["measure"]),
    ("help/recover.txt", ["recover"]),
    ("help/play.txt", ["play"]), ("help/preview.txt", ["preview"]),
    ("help/scan.txt", ["scan"]),
    ("help/bench.txt", ["bench"]), ("help/bench-capture.txt", ["bench", "capture"]),
    ("help/bench-writer.txt", ["bench", "writer"]),
    ("help/bench-retime.txt", ["bench", "retime"]), ("help/bench-pitch.txt", ["bench", "pitch"]),
    ("help/bench-diff.txt", ["bench", "diff"]), ("help/doctor.txt", ["doctor"]),
  ]
  private static let options = "help/options.txt"

  static let fixtures = pages.map(\.fixture) + [options]

  @Test(arguments: pages.indices)
  func `The help text of each command matches its fixture`(index: Int) async throws {
    let page = Self.pages[index]
    var transcript = Transcript(in: try Scratch())
    try await transcript.slowmo((page.words + ["--help"]).joined(separator: " "))
    try ContractFixtures.check(transcript.text, is: page.fixture)
  }

  @Test func `The options of all commands match a fixture`() async throws {
    let dumped = try await run(slowmoPath, ["--experimental-dump-help"])
    #expect(dumped.status == 0, "\(dumped.errors)")
    let tool = try JSONDecoder().decode(Tool.self, from: Data(dumped.output.utf8))
    let commands = tool.command.all(below: [])
    try ContractFixtures.check(commands.map(\.text).joined(separator: "\n"), is: Self.options)
    let verbs = commands.map { $0.words }.filter { $0.last != "help" }
    #expect(Set(verbs) == Set(Self.pages.map(\.words)))
  }

  /// The argument parser's description of the command.
  ///
  /// It contains only what users see.
  private struct Tool: Decodable { let command: Command }

  private struct Command: Decodable {
    let commandName: String
    let subcommands: [Command]?
    let arguments: [Argument]?

    /// The command and all of its subcommands, each with its names.
    func all(below parents: [String]) -> [(words: [String], text: String)] {
      let lines = (arguments ?? []).map { "  \($0.line)\n" }.joined()
      let title = (["slowmo"] + parents).joined(separator: " ")
      return [(parents, "\(title)\n\(lines)")]
        + (subcommands ?? []).flatMap { $0.all(below: parents + [$0.commandName]) }
    }
  }

  private struct Argument: Decodable {
    struct Name: Decodable {
      let kind: String
      let name: String
    }
    let kind: String
    let isOptional: Bool
    let isRepeating: Bool
    let shouldDisplay: Bool
    let names: [Name]?
    let valueName: String?
    let defaultValue: String?
    let allValues: [String]?

    var line: String {
      let names = (names ?? []).map { ($0.kind == "long" ? "--" : "-") + $0.name }
      var words = [kind, (names.isEmpty ? [valueName ?? ""] : names).joined(separator: ",")]
      if kind == "option", let valueName { words.append("<\(valueName)>") }
      words.append(isOptional ? "optional" : "required")
      if isRepeating { words.append("repeating") }
      if !shouldDisplay { words.append("hidden") }
      if let defaultValue { words.append("default=\(defaultValue)") }
      if let allValues { words.append("values=\(allValues.joined(separator: "|"))") }
      return words.joined(separator: " ")
    }
  }
}
