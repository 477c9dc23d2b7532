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
        slowmo recover half-copied.mp4 -o there.mp4

      The file is mended in place, without a copy, and its ledger is made again from the records in
      it. What is not whole is left where it is. A file that needs nothing is not touched; one that
      cannot be mended is left as it is (65).
      With -o, what is there of any movie that is cut off is copied to another file, as long as its
      index is there.
      """)

  @Argument(help: "The movie file.", completion: .file())
  var file: String

  @Option(
    name: .shortAndLong,
    help: "Copy what is there of a movie that is cut off to this file: .mov, .mp4 or .m4v.",
    completion: .file())
  var output: String?

  @Flag(name: [.customShort("y"), .long], help: "Replace files that exist.")
  var overwrite = false

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if output == standardOutput {
      throw ValidationError("a movie cannot be written to standard output: name a file")
    }
  }

  var endsReading: Bool { false }

  func perform() throws -> ExitStatus {
    let report: RecoveryReport
    if let output {
      try OutputNames.check([output], inputs: [file])
      return try copyReadable(to: output)
    }
    do throws(MediaError) {
      report = try MovieRecovery.recover(file)
    } catch {
      guard error.code == .invalidData, let asset = try? Asset(path: file, allowsTruncation: true),
        let truncation = asset.truncation
      else { throw error }
      throw CommandError(
        .badData, code: error.code.rawValue, "\(file) is cut off: \(truncation.words)",
        hint: "copy these to another file with slowmo recover \(file) -o there.mov")
    }
    if common.json {
      try Output.document(RecoverDocument(report))
    } else {
      for line in RecoverText.lines(report) { Output.line(line) }
    }
    return .done
  }
  /// Copies the frames that can be read to another file.
  private func copyReadable(to output: String) throws -> ExitStatus {
    let asset = try Asset(path: file, allowsTruncation: true)
    guard let truncation = asset.truncation, let track = asset.videoTrack else {
      throw CommandError(
        .badData, code: "invalid_data", "\(file) is not cut off: all its frames can be read",
        hint: "recover it in place, without -o, or copy it with slowmo retime")
    }
    var settings = ExportSettings(path: output, mode: .passthrough())
    settings.overwrites = overwrite
    let report = try ExportSession(Composition(asset), of: asset).export(
      settings, isCancelled: { Interrupt.isRequested })
    let document = RecoverDocument(file, track, truncation, report)
    if common.json {
      try Output.document(document)
    } else {
      Output.line("\(output): \(truncation.words) of \(file), and are copied")
    }
    return .done
  }
}
