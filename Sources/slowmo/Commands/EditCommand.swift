// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo edit PROJECT -o OUT`: exports a composition of many ranges and files.
struct EditCommand: ParsableCommand, Verb {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Export a project (.otio, .llc, .edl, .fcpxml) of many sources and ranges.",
    discussion: """
      EXAMPLES
        slowmo edit project.otio -o film.mov --copy
        slowmo edit project.otio -o film.mp4 --fps 30
        slowmo edit project.otio -o film2.mov --copy --dry-run
        slowmo edit project.otio -o again.otio

      Formats: OpenTimelineIO (.otio), LosslessCut (.llc), CMX 3600 (.edl) and Final Cut Pro XML
      1.x (.fcpxml), detected by content. A Samsung phone's movie with slow-motion ranges in its
      trailer is also a project.
      Clips, gaps, speeds, reversals, freezes and time curves are supported. The top video track
      is visible; its gaps show the track below. Only the first audio track is used. Transitions
      become cuts. A warning names everything that is left out.
      File names are relative to the project's directory. To create a project, run slowmo retime
      with -o NAME.otio: it stores exact times and ramps beside the standard values.
      --copy needs sources with the same encoding. Cuts between key frames follow --boundary.
      """)

  @Argument(
    help: "The project file: .otio, .llc, .edl or .fcpxml, or a Samsung phone's movie.",
    completion: .file())
  var project: String

  @Option(
    name: .shortAndLong,
    help: "The file to write: .mov, .mp4 or .m4v, .otio for a project, or - to print a project.",
    completion: .file())
  var output: String

  @Option(
    help: "Frame rate of an EDL's timecodes. Default: the rate of its first movie.",
    transform: FrameRate.init(parsing:))
  var timecodeFps: FrameRate?

  @OptionGroup var exporting: ExportOptions
  @OptionGroup var writing: WritingOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    try exporting.check(output: output)
    try common.check(standardOutputFor: "-o", output)
  }

  func perform() throws -> ExitStatus {
    try OutputNames.check([output], inputs: [project])
    let read: ProjectReader
    do {
      read = try ProjectReader(project, timecodeFps: timecodeFps, open: exporting.asset)
    } catch {
      throw Self.dataError(project, error)
    }
    for warning in read.warnings { Output.note("\(project): \(warning)") }
    try OutputNames.check([output], inputs: read.assets.map(\.path))
    guard read.composition.duration > .zero else {
      throw CommandError(
        .badData, code: "invalid_project", "\(project) is empty: it has no clip",
        hint: "choose a project with a clip on a track")
    }
    do {
      return try exporting.export(
        read.composition, of: read.assets, to: output, verb: "edit", writing, common)
    } catch let error as MediaError where error.code == .audioRefused {
      // If even the spectral algorithm cannot play this speed, no option helps, so the project's
      // data is bad. With another algorithm, the value of `--pitch` is wrong, so this is a usage
      // error.
      throw CommandError(
        exporting.pitch.algorithm == .spectral ? .badData : .usage, code: error.code.rawValue,
        "\(project): \(error.message)",
        hint: error.recovery.map(Advice.text) ?? "choose another speed")
    } catch {
      throw Self.dataError(project, error)
    }
  }

  /// Reports wrong times and speeds in a project as bad data and not as usage errors.
  private static func dataError(_ project: String, _ error: any Error) -> any Error {
    // Errors about a missing or unreadable movie are not about the project, so they pass unchanged.
    guard let error = error as? MediaError, Self.dataCodes.contains(error.code) else {
      return error
    }
    return CommandError(
      .badData, code: error.code.rawValue, "\(project): \(error.message)",
      hint: error.code == .frameRateNeeded
        ? "set it with --timecode-fps, such as 24, 25 or 29.97"
        : "correct the project, or export it again")
  }

  /// Error codes that stand for wrong times, speeds and ranges in a project.
  private static let dataCodes: Set<MediaError.Code> = [
    .overflow, .notPositive, .emptyRange, .outsideSource, .syntax, .notExact, .outsideComposition,
    .overlappingRanges, .invalidSegments, .cutInRamp, .invalidProject, .frameRateNeeded,
    .speedOutOfRange, .unsupportedFormat, .invalidMappings, .notAscending, .invalidSamples, .engine,
  ]
}

/// Reads a project file into a composition and opens its movies.
private struct ProjectReader {
  private(set) var composition: Composition
  private(set) var assets: [Asset] = []
  private(set) var warnings: [String] = []

  init(
    _ project: String, timecodeFps: FrameRate?, open: (String) throws(MediaError) -> Asset
  ) throws {
    if try Files.isMovie(project) {
      let asset = try open(project)
      composition = try Self.phoneMarkers(of: asset, in: project).composition(
        of: asset.mediaSource())
      assets = [asset]
      return
    }
    var opened: [String: Asset] = [:]
    var relinked: [String] = []
    func asset(_ path: String) throws(MediaError) -> Asset {
      if let known = opened[path] { return known }
      let found = ProjectPaths.found(path, in: project)
      if found != ProjectPaths.resolved(path, in: project) {
        relinked.append("\(path) not found; using \(found) instead")
      }
      let asset = try open(found)
      opened[path] = asset
      return asset
    }
    let read = try EditingProject(parsing: try Files.readText(project)) {
      (path) throws(MediaError) in
      try asset(path).mediaSource()
    } timeCodeRate: { (path) throws(MediaError) in
      if let timecodeFps { return timecodeFps }
      return try asset(path).videoTrack?.nominalFrameRate
    }
    composition = read.composition
    warnings = relinked + read.warnings
    assets = opened.values.sorted { $0.path < $1.path }
  }

  /// Reads the slow-motion markers in the trailer of a Samsung phone's movie.
  private static func phoneMarkers(of asset: Asset, in path: String) throws -> SlowMotionMarkers {
    // The phone may store a 240 fps recording at 30 fps. The movie is then already slow outside the
    // markers.
    let captured = asset.captureFrameRate?.rate.framesPerSecond
    let stored = asset.videoTrack?.nominalFrameRate?.framesPerSecond
    var elsewhere = Speed.normal
    if let captured, let stored, captured / stored > Rational(3, over: 2) {
      elsewhere = try Speed(captured / stored)
    }
    let tail = try Files.readTail(path, 1 << 20)
    guard let markers = try SlowMotionMarkers(samsungTrailer: tail, elsewhere: elsewhere) else {
      throw CommandError(
        .badData, code: "invalid_project", "\(path) is a movie without slow-motion markers",
        hint: "use slowmo retime, or choose a project: .otio, .llc, .edl or .fcpxml")
    }
    guard captured != nil || stored.map({ $0 > Rational(60) }) ?? false else {
      throw CommandError(
        .badData, code: "invalid_project",
        "\(path) has slow-motion markers, but its capture rate is unknown",
        hint: "set the ranges with slowmo retime --range and --speed")
    }
    return markers
  }
}
