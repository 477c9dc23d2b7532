// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo edit PROJECT -o OUT`: exports a composition of many ranges and files.
struct EditCommand: ParsableCommand, Verb, Sendable {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Export a project (.otio, .llc, .edl, .fcpxml) of many sources and ranges.",
    discussion: """
      EXAMPLES
        slowmo edit project.otio -o film.mov --copy
        slowmo edit project.otio -o film.mp4 --fps 30
        slowmo edit project.otio -o film2.mov --copy --dry-run
        slowmo edit a/*.otio -o 'film_{n:03}.mp4' --fps 30 --jobs 2

      A project is an OpenTimelineIO (.otio), LosslessCut (.llc), CMX 3600 (.edl) or Final Cut Pro
      XML 1.x (.fcpxml) file, or the movie of a Samsung phone with slow-motion ranges. To create
      one, run slowmo retime with -o NAME.otio.

      --copy copies the video of sources that have the same encoding. --fps renders any sources at a
      constant rate.

      MANUAL
        slowmo edit project.otio -o again.otio
        slowmo edit project.otio -o joined.mp4 --fps 30 --shard 1/2
        slowmo edit project.otio -o joined.mp4 --fps 30 --shard 2/2
        slowmo edit project.otio -o joined.mp4 --fps 30 --join

      The format of a project is detected by its content. Names of files in it are relative to its
      directory. A .otio file of slowmo retime contains exact times and ramps besides the standard
      values.

      Clips, gaps, speeds, reversals, freezes and time curves are supported. The top video track is
      visible, and its gaps show the track below. Only the first audio track is used. Transitions
      become cuts. Of a multicam clip, the active angle plays. A warning names everything that is
      left out.

      \(BatchOptions.explanation)

      --shard encodes a part of the video, on any computer, and --join puts the parts together. The
      movie is the same for any number of shards. A finished shard is kept.
      """)

  @Argument(
    help: ArgumentHelp(
      "The project files, or movies of a Samsung phone.",
      valueName: "project"), completion: .file())
  var projects: [String]

  @Option(
    name: .shortAndLong,
    help: """
      The file to write: .mov, .mp4 or .m4v, .otio for a project, or - to print a project; for \
      several projects, a directory or a template.
      """,
    completion: .file())
  var output: String

  @Option(
    help: "Frame rate of an EDL's timecodes. Default: the rate of its first movie.",
    transform: FrameRate.init(parsing:))
  var timecodeFps: FrameRate?

  @OptionGroup var exporting: ExportOptions
  @OptionGroup var batch: BatchOptions
  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if try batch.isUsed(projects, output) {
      try batch.check(output, exporting)
    } else {
      try exporting.check(output: output)
    }
    try common.check(standardOutputFor: "-o", output)
  }

  // Whether a signal may end the command by force: false for a batch, which must still report which
  // files are finished.
  var endsAtOnce: Bool { (try? batch.isUsed(projects, output)) != true }

  func perform() throws -> ExitStatus {
    try exporting.burnIn?.prepareFont()
    if try batch.isUsed(projects, output) {
      let batch = try BatchExport(
        "edit", projects, output, batch, exporting, writing, prepare: { try prepared($0, $1) },
        refine: { refined($0, $1) })
      return try batch.perform(common)
    }
    do {
      return try exporting.export(
        prepared(projects[0], output), to: output, verb: "edit", writing, common)
    } catch { throw refined(projects[0], error) }
  }

  /// Reads a project and opens its movies.
  private func prepared(_ project: String, _ output: String) throws -> PreparedExport {
    try OutputNames.check([output], inputs: [project])
    let read = try ProjectReader(project, timecodeFps: timecodeFps, open: exporting.asset)
    for warning in read.warnings { Output.note("\(project): \(warning)") }
    try OutputNames.check([output], inputs: read.assets.map(\.path))
    guard read.composition.duration > .zero else {
      throw CommandError(
        .badData, code: "invalid_project", "\(project) is empty: it has no clip",
        hint: "choose a project with a clip on a track")
    }
    return PreparedExport(composition: read.composition, assets: read.assets)
  }

  /// Attributes an error to the project if the project's data causes the error.
  private func refined(_ project: String, _ error: any Error) -> any Error {
    guard let error = error as? MediaError, error.code == .audioRefused else {
      return ProjectReader.dataError(project, error)
    }
    // If even the spectral algorithm cannot play this speed, no option helps, so the fault is in
    // the project's data. With another algorithm, the value of `--pitch` is wrong, so this is a
    // usage error.
    return CommandError(
      exporting.pitch.algorithm == .spectral ? .badData : .usage, code: error.code.rawValue,
      "\(project): \(error.message)",
      hint: error.recovery.map { Advice.text($0) } ?? "choose another speed")
  }
}
