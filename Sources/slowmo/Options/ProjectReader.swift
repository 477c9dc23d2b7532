// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// Reads a project file into a composition and opens its movies.
struct ProjectReader {
  private(set) var composition: Composition
  private(set) var assets: [Asset] = []
  private(set) var warnings: [String] = []
  /// The video tracks, the lowest first; in the composition, they are merged.
  private(set) var videoTracks: [CompositionTrack] = []

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
    videoTracks = read.videoTracks
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

  /// Reports wrong times and speeds in a project as bad data and not as usage errors.
  static func dataError(_ project: String, _ error: any Error) -> any Error {
    // Errors about a missing or unreadable movie are not caused by the project, so they stay
    // unchanged.
    guard let error = error as? MediaError, Self.dataCodes.contains(error.code) else {
      return error
    }
    return CommandError(
      .badData, code: error.code.rawValue, "\(project): \(error.message)",
      hint: error.code == .frameRateNeeded
        ? "set it with --timecode-fps, such as 24, 25 or 29.97"
        : "correct the project, or export it again")
  }

  /// The error codes that a project with wrong times, speeds or ranges causes.
  private static let dataCodes: Set<MediaError.Code> = [
    .overflow, .notPositive, .emptyRange, .outsideSource, .syntax, .notExact, .outsideComposition,
    .overlappingRanges, .invalidSegments, .cutInRamp, .invalidProject, .frameRateNeeded,
    .speedOutOfRange, .unsupportedFormat, .invalidMappings, .notAscending, .invalidSamples, .engine,
  ]
}
