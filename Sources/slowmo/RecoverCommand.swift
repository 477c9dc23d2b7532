// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Overcrank

/// `slowmo recover FILE`: makes a whole movie of what a crash or a power cut left.
struct RecoverCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "Make a whole movie of a recording that a crash or a power cut left.",
    discussion: """
      EXAMPLES
        slowmo recover take.mov
        slowmo recover take.mov --json

      The file is mended in place, without a copy, and its ledger is made again from the records in
      it. What is not whole is left where it is. A file that needs nothing is not touched; one that
      cannot be mended is left as it is (65).
      """)

  @Argument(help: "The movie file.")
  var file: String

  @OptionGroup var common: CommonOptions

  func perform() throws -> ExitStatus {
    let report = try MovieRecovery.recover(file)
    if common.json {
      try Output.document(RecoverDocument(report))
    } else {
      for line in RecoverText.lines(report) { Output.line(line) }
    }
    return .done
  }
}
