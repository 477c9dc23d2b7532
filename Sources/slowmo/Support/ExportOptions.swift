// SPDX-License-Identifier: Apache-2.0
public import ArgumentParser
import FoundationEssentials
import Overcrank

/// How a composition is exported: what `retime` and `edit` have in common.
struct ExportOptions: ParsableArguments {
  @Flag(help: "Copy the picture's packets and give them new times.")
  var copy = false

  @Option(help: "Render at this constant rate, such as 30.", transform: FrameRate.init(parsing:))
  var fps: FrameRate?

  @Option(help: "The sound of retimed parts: spectral, varispeed or mute.")
  var pitch = AudioTimePitchAlgorithm.spectral

  @Option(help: "How --fps picks frames; hold is the only way there is.")
  var sampling = FrameSampling.hold

  @Option(help: "The codec with --fps: h264, mjpeg or ffv1.")
  var codec = ExportCodec.h264

  @Option(help: "The quality of h264 with --fps, from 0 (lossless) to 51; 18 looks the same.")
  var crf: Int?

  @Option(help: "Cuts of --copy off a key frame: auto or squeeze (hide what is needed), keyframe.")
  var boundary = ExportBoundary.auto

  func validate() throws {
    if copy && fps != nil { throw ValidationError("--copy and --fps exclude each other") }
    if let crf, !(0...51).contains(crf) { throw ValidationError("--crf \(crf) is not 0 to 51") }
    if copy && crf != nil { throw ValidationError("--crf needs --fps: --copy encodes nothing") }
  }

  /// Throws unless one of the ways is chosen; a project file needs none.
  func check(output: String) throws {
    if !copy && fps == nil && !isProject(output) {
      throw ValidationError("choose how to export: --copy or --fps RATE")
    }
  }

  /// Exports a composition and tells of it, or tells the plan, or writes it as a project.
  func export(
    _ composition: Composition, of assets: [Asset], to output: String, verb: String,
    _ writing: WritingOptions, _ common: CommonOptions,
    change: (inout ExportSettings) -> Void = { _ in }
  ) throws -> ExitStatus {
    if isProject(output) {
      return try writeProject(composition, output, verb: verb, writing, common)
    }
    let session = try ExportSession(composition, of: assets)
    var settings = ExportSettings(path: output, mode: fps.map { .constant($0) } ?? .passthrough)
    settings.audioTimePitchAlgorithm = pitch
    settings.boundary = boundary
    settings.codec = codec
    settings.crf = crf ?? settings.crf
    settings.overwrites = writing.overwrite
    change(&settings)
    if writing.dryRun {
      return try tell(RetimePlanDocument(verb, try session.plan(settings), composition), common)
    }
    let progress = ProgressReporter(writing.progress)
    progress.start(file: output)
    let seconds = composition.duration.doubleValue
    let report = try session.export(settings, isCancelled: { Interrupt.isRequested }) {
      done, total in
      progress.update(
        ProgressReporter.State(
          frame: done, totalFrames: total,
          seconds: total > 0 ? seconds * Double(done) / Double(total) : 0))
    }
    progress.end(file: output)
    return try tell(RetimeDocument(verb, report), common)
  }

  private func isProject(_ output: String) -> Bool { output.lowercased().hasSuffix(".otio") }

  /// Writes a project, its files named as seen from its folder.
  private func writeProject(
    _ composition: Composition, _ output: String, verb: String, _ writing: WritingOptions,
    _ common: CommonOptions
  ) throws -> ExitStatus {
    let name = output.split(separator: "/").last.map(String.init) ?? output
    let project = OpenTimeline(
      try composition.relocated { ProjectPaths.path($0, seenFrom: output) }, name: name)
    if !writing.dryRun {
      try writeFile(output, Data(try project.text().utf8), overwrites: writing.overwrite)
    }
    return try tell(
      RetimePlanDocument(
        verb, output, composition, isDryRun: writing.dryRun), common)
  }

  private func tell(
    _ document: some Encodable & TextDocument, _ common: CommonOptions
  ) throws -> ExitStatus {
    if common.json {
      try Output.document(document)
    } else {
      for line in document.lines { Output.line(line) }
    }
    return .done
  }
}

/// Paths of the movies that a project names, which are seen from the project's folder.
enum ProjectPaths {
  /// The folder of a file, with its slash; nothing for the current one.
  static func folder(of file: String) -> String {
    file.lastIndex(of: "/").map { String(file[...$0]) } ?? ""
  }

  /// A path that a project in a file names, seen from here.
  static func resolved(_ path: String, in project: String) -> String {
    path.hasPrefix("/") ? path : folder(of: project) + path
  }

  /// A path seen from here as a project in a file names it: relative where it is below the
  /// project's folder, else from the root.
  static func path(_ path: String, seenFrom project: String) -> String {
    let folder = folder(of: project)
    if folder.isEmpty { return path }
    if path.hasPrefix(folder) { return String(path.dropFirst(folder.count)) }
    return absolutePath(path)
  }
}

/// How frames are picked at a constant rate.
enum FrameSampling: String, CaseIterable, ExpressibleByArgument {
  /// The last frame at or before each instant.
  case hold
}

extension AudioTimePitchAlgorithm: ExpressibleByArgument {}
extension ExportBoundary: ExpressibleByArgument {}
extension ExportCodec: ExpressibleByArgument {}
