// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo info FILE`: describes a movie file.
struct InfoCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "info",
    abstract: "Describe a movie file: tracks, rates, duration and metadata.",
    discussion: """
      EXAMPLES
        slowmo info take.mov
        slowmo info take.mov --json

      The capture rate is reported only if the file states it; it is never guessed.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @OptionGroup var common: CommonOptions

  func perform() throws -> ExitStatus {
    let asset = try Asset(path: file, allowsTruncation: true)
    let document = InfoDocument(asset)
    if common.json {
      try Output.document(document)
    } else {
      for line in document.lines { Output.line(line) }
    }
    return .done
  }
}
