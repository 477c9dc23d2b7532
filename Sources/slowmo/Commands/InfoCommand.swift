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
        slowmo info take.mov --timed-metadata

      The capture rate is printed only if the file states it. It is never guessed. For a Live Photo
      or a Motion Photo, its movie is described.
      """)

  @Argument(help: "The movie file, or a photo with a movie.", completion: .file())
  var file: String

  @Flag(help: "Print the values of frames, one JSON object per line.")
  var timedMetadata = false

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if timedMetadata, common.json {
      throw ValidationError("--timed-metadata and --json exclude each other")
    }
  }

  func perform() throws -> ExitStatus {
    // For a Live Photo, the movie of the pair is described.
    let pair = LivePhoto(path: file)
    let movie = try pair?.openMovie()
    let asset = try Asset(path: movie?.path ?? file, allowsTruncation: true)
    Output.notes(of: asset)
    if timedMetadata {
      for item in asset.timedMetadata() {
        try Output.data(
          Array(Output.encode(InfoDocument.TimedValue(item), isPretty: false)) + [0x0A])
      }
      return .done
    }
    let document = InfoDocument(asset, of: file, pair)
    try Output.print(document, asJSON: common.json)
    return .done
  }
}
