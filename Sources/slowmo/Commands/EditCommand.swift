// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Overcrank

/// `slowmo edit PROJECT -o OUT`: a composition of many ranges and files.
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

      Projects are read from OpenTimelineIO (.otio), LosslessCut (.llc), CMX 3600 (.edl) and Final
      Cut Pro XML 1.x (.fcpxml); their content tells which. A Samsung phone's movie is a project,
      too, by the slow-motion ranges at its end.
      Clips, gaps, speeds, reversals, freezes and time curves are played. Of several video tracks
      the top one is seen, and gaps show what is below. Of several audio tracks the first is
      heard, and transitions are cuts; whatever is left out is named.
      The files of a project are seen from its own folder. slowmo retime writes one for
      -o NAME.otio, in which the exact times and ramps stand beside what other programs read.
      --copy needs pictures that are stored alike, and cuts where decoding can start.
      """)

  @Argument(
    help: "The project file: .otio, .llc, .edl or .fcpxml, or a Samsung phone's movie.",
    completion: .file())
  var project: String

  @Option(
    name: .shortAndLong,
    help: "The file to write: .mov, .mp4 or .m4v, .otio for a project, or - to print that.",
    completion: .file())
  var output: String

  @Option(
    help: "Frames per second of an EDL's time codes, if its first movie has another rate.",
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
        .badData, code: "invalid_project", "\(project) plays nothing",
        hint: "give a project with a clip on a track")
    }
    do {
      return try exporting.export(
        read.composition, of: read.assets, to: output, verb: "edit", writing, common)
    } catch let error as MediaError where error.code == .audioRefused {
      // The project chose the speed; who chose the algorithm may choose another one.
      throw CommandError(
        exporting.pitch == .spectral ? .badData : .usage, code: error.code.rawValue,
        "\(project): \(error.message)",
        hint: error.recovery.map(Advice.text) ?? "choose another speed")
    } catch {
      throw Self.dataError(project, error)
    }
  }

  /// A project's times and speeds are data: nobody typed them.
  private static func dataError(_ project: String, _ error: any Error) -> any Error {
    // A missing or unreadable movie is told as it is.
    guard let error = error as? MediaError, Self.dataCodes.contains(error.code) else {
      return error
    }
    return CommandError(
      .badData, code: error.code.rawValue, "\(project): \(error.message)",
      hint: error.code == .frameRateNeeded
        ? "name it with --timecode-fps, such as 24, 25 or 29.97"
        : "change the project, or save it from its program again")
  }

  /// What the times, speeds and ranges of a project may be wrong in.
  private static let dataCodes: Set<MediaError.Code> = [
    .overflow, .notPositive, .emptyRange, .outsideSource, .syntax, .notExact, .outsideComposition,
    .overlappingRanges, .invalidSegments, .cutInRamp, .invalidProject, .frameRateNeeded,
    .speedOutOfRange, .unsupportedFormat, .invalidMappings, .notAscending, .invalidSamples, .engine,
  ]
}

/// What a project file plays, and its movies.
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
        relinked.append("\(path) is not there, and \(found) is taken for it")
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

  /// What a phone says at the end of its movie.
  private static func phoneMarkers(of asset: Asset, in path: String) throws -> SlowMotionMarkers {
    // A movie of 240 frames a second may be stored at 30: all of it is slow as it stands.
    let captured = asset.captureFrameRate?.rate.framesPerSecond
    let stored = asset.videoTrack?.nominalFrameRate?.framesPerSecond
    var elsewhere = Speed.normal
    if let captured, let stored, captured / stored > Rational(3, over: 2) {
      elsewhere = try Speed(captured / stored)
    }
    let tail = try Files.readTail(path, 1 << 20)
    guard let markers = try SlowMotionMarkers(samsungTrailer: tail, elsewhere: elsewhere) else {
      throw CommandError(
        .badData, code: "invalid_project", "\(path) is a movie without slow-motion ranges",
        hint: "retime it with slowmo retime, or give a project: .otio, .llc, .edl or .fcpxml")
    }
    guard captured != nil || stored.map({ $0 > Rational(60) }) ?? false else {
      throw CommandError(
        .badData, code: "invalid_project",
        "\(path) has slow-motion ranges, but does not say at which rate it was captured",
        hint: "give the ranges to slowmo retime with --range and --speed")
    }
    return markers
  }
}
