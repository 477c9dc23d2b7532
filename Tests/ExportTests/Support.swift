// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankMovieFormat
import TestSupport
import Testing

extension MediaTime {
  /// A time in milliseconds.
  static func milliseconds(_ value: Int64) -> MediaTime {
    MediaTime(microseconds: value * 1_000)
  }
}

extension ExportSettings {
  /// Changes the render settings of a constant-rate export.
  mutating func render(_ change: (inout RenderSettings) -> Void) {
    guard case .constant(let rate, var rendering) = mode else { preconditionFailure("copied") }
    change(&rendering)
    mode = .constant(rate, rendering)
  }
}

extension VideoEncoding {
  /// One encoding of each codec.
  static let all = [VideoEncoding.h264(), .hevc(), .ffv1, .mjpeg]
}

/// Copies an HEVC movie whose index comes last, and adds Dolby Vision to its sample description.
func claimingDolbyVision(_ path: String, _ copy: String) throws -> Asset {
  var movie = try PatchedMovie(path)
  let box = "moov/trak/mdia/minf/stbl/stsd"
  let size = try movie.number(4, at: 8, of: box)
  var contents: [UInt8] = []
  for byte in 0..<8 + Int(size) { contents.append(UInt8(try movie.number(1, at: byte, of: box))) }
  // Profile 8, level 4, metadata in each frame, compatible with HLG.
  let configuration: [UInt8] = [1, 0, 0x10, 0x25, 0x40] + [UInt8](repeating: 0, count: 19)
  contents += [0, 0, 0, 32] + Array("dvvC".utf8) + configuration
  withUnsafeBytes(of: UInt32(size + 32).bigEndian) { contents.replaceSubrange(8..<12, with: $0) }
  try movie.replace(box, with: contents)
  try Data(movie.bytes).write(to: URL(fileURLWithPath: copy))
  return try Asset(path: copy)
}

/// A time range in milliseconds.
func range(_ start: Int64, _ end: Int64) throws -> TimeRange {
  try TimeRange(start: .milliseconds(start), end: .milliseconds(end))
}

/// A composition of ranges of a movie, in milliseconds.
func composition(of asset: Asset, _ ranges: [(Int64, Int64)]) throws -> Composition {
  var composition = Composition()
  for (start, end) in ranges {
    try composition.insertTimeRange(
      range(start, end), of: asset.mediaSource(), at: composition.duration)
  }
  return composition
}

/// A speed as a fraction of two whole numbers.
func speed(_ above: Int64, _ below: Int64 = 1) throws -> Speed { try Speed.of(above, below) }

extension Asset {
  /// Writes a movie by its recipe, and opens it.
  static func made(_ recipe: MovieRecipe, in directory: Scratch, _ name: String = "clip") throws
    -> Asset
  {
    try recipe.asset(at: directory.file("\(name).\(recipe.container)"))
  }

  /// A composition that plays all of the asset, with some ranges at other speeds.
  func retimed(_ changes: [(range: TimeRange, speed: Speed)]) throws -> Composition {
    try .retimed(
      try mediaSource(), changes: changes.map { Composition.SpeedChange($0.speed, in: $0.range) })
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
      PaintedBlocks.number(in: try reader.mediaFrame(at: $0))
    }
  }

  /// All samples of the audio track.
  func audio() throws -> [[Float]] {
    var reader = try AudioReader(self)
    let track = try #require(audioTrack)
    return try reader.samples(from: 0, count: Int(track.startSample + track.sampleCount))
  }
}

extension Asset {
  /// The largest difference of a frame's time from the intended time, in seconds.
  ///
  /// It comes from rounding and jitter.
  func slack() throws -> Rational {
    let table = try #require(videoTrack).frames
    let durations = table.entries.dropLast().map(\.duration)
    guard let shortest = durations.min(), !durations.allSatisfy({ $0 % shortest == 0 }) else {
      return .zero
    }
    let tick = Rational(1, over: Int128(table.timescale))
    let wanted = max(tick / Rational(2), Rational(1, over: 1_000_000))
    return min(wanted, tick * Rational(Int128(shortest), over: 4))
  }
}

extension Composition {
  /// The time at which each frame of an asset is shown, by a plain search that does not use the
  /// export plan.
  ///
  /// The segments must play forward at constant speeds. A frame within the tolerance of a segment's
  /// edge counts as at the edge. With `isForSlots`, frames are due earlier, by as much as their
  /// times may be late.
  func shownTimes(
    of asset: Asset, isForSlots: Bool = false
  ) throws -> [(index: Int, time: Rational, segment: Int)] {
    let frames = try #require(asset.videoTrack).frames
    let slack = try asset.slack()
    var shown: [(index: Int, time: Rational, segment: Int)] = []
    var end: MediaTime?
    for (number, segment) in segments.enumerated() {
      guard let mapping = segment.mapping?.line else { continue }
      let isContinued = mapping.source.start == end
      end = mapping.source.end
      let edges = (mapping.source.start.seconds, mapping.source.end.seconds)
      for index in frames.entries.indices {
        let start = try frames.time(ofFrame: Int64(index)).seconds
        let end = try frames.time(ofFrame: Int64(index) + 1).seconds
        guard start < edges.1 - slack, end > edges.0 + slack else {
          continue
        }
        if isContinued, let last = shown.last, last.index == index { continue }
        let isFirst = start <= edges.0 + slack
        let time = isFirst ? edges.0 : isForSlots ? start - slack : start
        shown.append((index, mapping.targetSeconds(of: time), number))
      }
    }
    return shown
  }
}

/// The error with which an export is refused.
func refusal(
  _ composition: Composition, of asset: Asset, _ settings: ExportSettings,
  sourceLocation: SourceLocation = #_sourceLocation
) throws -> MediaError {
  let session = ExportSession(composition, of: asset)
  var planned: MediaError?
  do throws(MediaError) { _ = try session.plan(settings) } catch { planned = error }
  do throws(MediaError) { try session.export(settings) } catch {
    // The plan of an export checks everything except creating the file.
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

extension Composition {
  /// Makes a composition of up to three ranges of an asset, with a slow range, a ramp or a freeze.
  ///
  /// The asset lasts at least a second. With `reverses`, a range may play backwards.
  static func random(_ asset: Asset, seed: UInt64, reverses: Bool = false) throws -> Composition {
    var random = SeededGenerator(seed: seed)
    var composition = Composition()
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let ends = (0..<2).map { _ in Int64.random(in: 0...99, using: &random) * 10 + 3 }.sorted()
      guard ends[0] < ends[1], .milliseconds(ends[1]) < asset.duration else { continue }
      try composition.insertTimeRange(
        range(ends[0], ends[1]), of: asset.mediaSource(), at: composition.duration)
    }
    if composition.duration == .zero { composition = try Composition(asset) }
    let middle = try MediaTime(composition.duration.seconds / 2)
    let half = try TimeRange(start: .zero, end: middle)
    switch Int.random(in: 0..<(reverses ? 5 : 4), using: &random) {
    case 0: break
    case 1: try composition.setSpeed(speed(1, 8), in: half)
    case 2:
      // A ramp may not contain a cut.
      let first = try #require(composition.track(.video)?.segments.first).target
      try composition.setSpeedRamp(SpeedRamp(from: speed(1), to: speed(1, 4)), in: first)
    case 3: try composition.freezeFrame(at: middle, for: .milliseconds(333))
    default: try composition.reverse(half)
    }
    return composition
  }
}
