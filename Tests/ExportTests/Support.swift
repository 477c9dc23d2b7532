// SPDX-License-Identifier: Apache-2.0
import Assets
import Editing
import Export
import LibAV
import MediaTiming
import TestSupport
import Testing

extension MediaTime {
  /// Thousandths of a second.
  static func milliseconds(_ value: Int64) -> MediaTime {
    MediaTime(microseconds: value * 1_000)
  }
}

/// A range in thousandths of a second.
func range(_ start: Int64, _ end: Int64) throws -> TimeRange {
  try TimeRange(start: .milliseconds(start), end: .milliseconds(end))
}

/// A speed of two whole numbers.
func speed(_ above: Int64, _ below: Int64 = 1) throws -> Speed {
  try Speed(Rational(Int128(above), Int128(below)))
}

extension Asset {
  /// The movie of a recipe, in a folder.
  static func made(_ recipe: MovieRecipe, in folder: Scratch, _ name: String = "clip") throws
    -> Asset
  {
    let path = folder.file("\(name).\(recipe.container)")
    try recipe.write(to: path)
    return try Asset(path: path)
  }

  /// A composition that plays all of the asset, some ranges at other speeds.
  func retimed(_ changes: [(range: TimeRange, speed: Speed)]) throws -> Composition {
    try .retimed(try mediaSource(), changes: changes)
  }

  /// The times of all frames, in seconds.
  func times() throws -> [Rational] {
    let frames = try #require(videoTrack).frames
    return try (0..<frames.entries.count).map { try frames.time(ofFrame: Int64($0)).seconds }
  }

  /// The numbers painted into all frames.
  func numbers() throws -> [Int?] {
    var reader = try FrameReader(self)
    return try (0..<(videoTrack?.frameCount ?? 0)).map {
      PaintedBlocks.number(in: try reader.picture(at: $0))
    }
  }

  /// All samples of the sound.
  func sound() throws -> [[Float]] {
    var reader = try SoundReader(self)
    let track = try #require(soundTrack)
    return try reader.samples(from: 0, count: Int(track.startSample + track.sampleCount))
  }
}

extension Composition {
  /// When each frame of an asset is shown, by plain search: the definition, not the plan.
  ///
  /// For what plays forwards at constant speeds.
  func shownTimes(of asset: Asset) throws -> [(index: Int, time: Rational)] {
    let frames = try #require(asset.videoTrack).frames
    var shown: [(index: Int, time: Rational)] = []
    var end: MediaTime?
    for segment in segments {
      guard let mapping = segment.mapping?.line else { continue }
      let goesOn = mapping.source.start == end
      end = mapping.source.end
      for index in frames.entries.indices {
        let start = try frames.time(ofFrame: Int64(index))
        let end = try frames.time(ofFrame: Int64(index) + 1)
        guard start < mapping.source.end, end > mapping.source.start else { continue }
        if goesOn, let last = shown.last, last.index == index { continue }
        let time = max(start, mapping.source.start).seconds
        shown.append((index, try mapping.targetSeconds(of: time)))
      }
    }
    return shown
  }
}

/// The error of an export that is refused.
func refusal(
  _ composition: Composition, of asset: Asset, _ settings: ExportSettings,
  sourceLocation: SourceLocation = #_sourceLocation
) throws -> ExportError {
  let session = ExportSession(composition, of: asset)
  var planned: ExportError?
  do throws(ExportError) { _ = try session.plan(settings) } catch { planned = error }
  do throws(ExportError) { try session.export(settings) } catch {
    // Creating the file is the one thing that a plan does not try.
    if error.code != .outputExists && error.code != .cannotCreate {
      #expect(planned == error, sourceLocation: sourceLocation)
    }
    return error
  }
  throw Unexpected(description: "the export was not refused")
}

struct Unexpected: Error, CustomStringConvertible {
  let description: String
}
