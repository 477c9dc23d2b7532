// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Overcrank

/// `slowmo edit PROJECT -o OUT`: a composition of many ranges and files.
struct EditCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Export a project (OpenTimelineIO JSON) of many sources and ranges.",
    discussion: """
      EXAMPLES
        slowmo edit project.otio -o film.mov --copy
        slowmo edit project.otio -o film.mp4 --fps 30
        slowmo edit project.otio -o film2.mov --copy --dry-run
        slowmo edit project.otio -o again.otio

      A project is what OpenTimelineIO writes: clips, gaps, LinearTimeWarp and FreezeFrame. Its
      files are seen from its own folder. slowmo retime writes one for -o NAME.otio, in which the
      exact times and ramps stand beside what other programs read.
      --copy needs pictures that are stored alike, and cuts where decoding can start.
      """)

  @Argument(help: "The project file: OpenTimelineIO JSON.")
  var project: String

  @Option(name: .shortAndLong, help: "The file to write: .mov, .mp4 or .m4v, or .otio.")
  var output: String

  @OptionGroup var exporting: ExportOptions
  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws { try exporting.check(output: output) }

  func perform() throws -> ExitStatus {
    var assets: [Asset] = []
    let read = try OpenTimeline(parsing: try readText(project)) { path in
      let asset = try Asset(path: ProjectPaths.resolved(path, in: project))
      assets.append(asset)
      return try asset.mediaSource()
    }
    for warning in read.warnings { Output.note("slowmo: \(project): \(warning)") }
    guard read.composition.duration > .zero else {
      throw CommandError(
        .badData, code: "invalid_project", "\(project) plays nothing",
        hint: "give a project with a clip on a track")
    }
    return try exporting.export(
      read.composition, of: assets, to: output, verb: "edit", writing, common)
  }
}
