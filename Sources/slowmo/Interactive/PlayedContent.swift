// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

/// A clip or a project, opened for playback.
struct PlayedContent {
  private(set) var composition: Composition
  let assets: [Asset]
  /// The marks of the movie or project, in composition time.
  let marks: [CompositionMarker]
  /// The movie, which is needed for times given in frames; nil for a project.
  private let asset: Asset?
  /// The start of the played range, in the time of the clip or project.
  private let start: MediaTime
  private let file: String
  /// The marks of the whole movie or project, in the time of that movie or project.
  private let allMarks: [CompositionMarker]

  /// Opens a movie or a project, or a range of it.
  init(
    _ file: String, _ range: TimeRangeExpression?, _ onError: UndecodableFramePolicy,
    _ trackChoice: TrackOptions, _ timing: ClockOptions
  ) throws {
    func open(_ path: String) throws(MediaError) -> Asset {
      try openAsset(path, onError, trackChoice)
        .measured(by: timing.clock, captureFrameRate: timing.captureFps)
    }
    self.file = file
    let isProject = ["otio", "llc", "edl", "fcpxml", "xml"].contains(file.fileExtension ?? "")
    let length: TimeRange?
    var marks: [CompositionMarker]
    if isProject {
      asset = nil
      do {
        let read = try ProjectReader(file, timecodeFps: nil) { (path) throws(MediaError) in
          try open(path)
        }
        for warning in read.warnings { Output.note("\(file): \(warning)") }
        (composition, assets) = (read.composition, read.assets)
      } catch { throw ProjectReader.dataError(file, error) }
      marks = composition.markers
      composition.markers = []
      length = try range?.resolved(
        sourceDuration: composition.duration, frameCount: 0,
        frameTime: Self.refuseFrame, markTime: Self.markTime(marks, file))
    } else {
      let asset = try open(file)
      self.asset = asset
      composition = try Composition(asset)
      assets = [asset]
      length = try range.map(asset.resolve)
      marks = try asset.marks.map { mark throws(MediaError) in
        CompositionMarker(mark.name, try TimeRange(start: mark.time, end: mark.time))
      }
    }
    allMarks = marks
    guard composition.duration > .zero else {
      throw CommandError(
        .badData, code: "invalid_project", "\(file) is empty: it has no clip",
        hint: "choose a project with a clip on a track")
    }
    start = length?.start ?? .zero
    if let length {
      let whole = composition
      composition = Composition()
      try composition.insertTimeRange(length, of: whole, at: .zero)
      marks = try marks.filter { length.contains($0.range.start) }.map { mark in
        var moved = mark
        let end = min(mark.range.end, length.end)
        moved.range = try TimeRange(
          start: MediaTime(mark.range.start - length.start), end: MediaTime(end - length.start))
        return moved
      }
    }
    self.marks = marks
  }

  private static func refuseFrame(_ index: Int64) throws(MediaError) -> MediaTime {
    throw MediaError(.outsideSource, "a project has no frame numbers")
  }

  /// Returns a function that finds the time of a mark by its name.
  private static func markTime(
    _ marks: [CompositionMarker], _ file: String
  ) -> (String) throws(MediaError) -> MediaTime {
    { name throws(MediaError) in
      guard let mark = marks.first(where: { $0.name == name }) else {
        throw .unknownMark(name, in: file, among: marks.map(\.name))
      }
      return mark.range.start
    }
  }

  /// Returns the composition time of a time in the clip or project; zero, the start of the played
  /// range, if `expression` is nil.
  func time(_ expression: TimeExpression?) throws(MediaError) -> MediaTime {
    guard let expression else { return .zero }
    if let asset { return try MediaTime(asset.resolve(expression) - start) }
    let time = try expression.resolved(
      sourceDuration: composition.duration, frameCount: 0, frameTime: Self.refuseFrame,
      markTime: Self.markTime(allMarks, file))
    return try MediaTime(time - start)
  }
}
