// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankLinuxSystem

/// A clip or a project that is played.
struct PlayedContent {
  private(set) var composition: Composition
  let assets: [Asset]
  /// The movie, for times in frames; nil for a project.
  private let asset: Asset?
  /// The start of the range, in the clip's or project's own time.
  private let start: MediaTime
  private let file: String

  /// Opens a movie or a project, or a range of it.
  init(
    _ file: String, _ range: TimeRangeExpression?, _ onError: UndecodableFramePolicy
  ) throws {
    self.file = file
    let isProject = ["otio", "llc", "edl", "fcpxml", "xml"].contains(file.fileExtension ?? "")
    let length: TimeRange?
    if isProject {
      asset = nil
      do {
        let read = try ProjectReader(file, timecodeFps: nil) { (path) throws(MediaError) in
          try openAsset(path, onError)
        }
        for warning in read.warnings { Output.note("\(file): \(warning)") }
        (composition, assets) = (read.composition, read.assets)
      } catch { throw ProjectReader.dataError(file, error) }
      length = try range?.resolved(
        sourceDuration: composition.duration, frameCount: 0,
        frameTime: { (_) throws(MediaError) in
          throw MediaError(.outsideSource, "a project has no frame numbers")
        })
    } else {
      let asset = try openAsset(file, onError)
      self.asset = asset
      composition = try Composition(asset)
      assets = [asset]
      length = try range.map(asset.resolve)
    }
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
    }
  }

  /// Returns the composition time of a time in the clip or project; its start for none.
  func time(_ expression: TimeExpression?) throws(MediaError) -> MediaTime {
    guard let expression else { return .zero }
    if let asset { return try MediaTime(asset.resolve(expression) - start) }
    let time = try expression.resolved(
      sourceDuration: composition.duration, frameCount: 0,
      frameTime: { (_) throws(MediaError) in
        throw MediaError(.outsideSource, "a project has no frame numbers")
      })
    return try MediaTime(time - start)
  }
}
