// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Exports that copy packets with new times.
///
/// Each frame is there once, byte for byte, at its exact time.
struct PassthroughTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func settings(_ name: String = "slow.mov") -> ExportSettings {
    ExportSettings(path: directory.file(name), mode: .passthrough())
  }

  /// Exports, and checks the rules for every passthrough export without cuts.
  @discardableResult
  private func export(
    _ composition: Composition, of asset: Asset, _ name: String = "slow.mov",
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> (asset: Asset, report: ExportReport) {
    let session = ExportSession(composition, of: asset)
    let planned = try session.plan(settings(name))
    let report = try session.export(settings(name))
    let result = try Asset(path: report.path)
    #expect(
      result.duration == report.duration, "the file says what the report says",
      sourceLocation: sourceLocation)
    #expect(planned.framesCopied == report.framesCopied, sourceLocation: sourceLocation)
    #expect(planned.duration == report.duration, sourceLocation: sourceLocation)
    #expect(planned.segments == composition.segments, sourceLocation: sourceLocation)
    #expect(planned.audio == report.audio, sourceLocation: sourceLocation)
    #expect(
      planned.maxTimeError.wholeNanoseconds == report.maxTimeError.wholeNanoseconds,
      sourceLocation: sourceLocation)
    let wanted = try composition.shownTimes(of: asset).map(\.time)
    let found = try result.times()
    let origin = try #require(wanted.first)
    #expect(found.count == wanted.count, sourceLocation: sourceLocation)
    var worst = Rational.zero
    for (one, other) in zip(found, wanted) {
      let error = one - (other - origin)
      worst = max(worst, error < .zero ? -error : error)
    }
    let nanoseconds = try (worst * Rational(1_000_000_000))
      .rounded(.towardPositiveInfinity)
    #expect(
      nanoseconds <= Int128(report.maxTimeError.wholeNanoseconds), "off by \(nanoseconds) ns",
      sourceLocation: sourceLocation)
    return (result, report)
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `A passthrough export at 1/8 speed has exact frame times`() async throws {
    let recipe = MovieRecipe.constant(240, count: 960)
    let asset = try Asset.made(recipe, in: directory)
    #expect(asset.duration == MediaTime(seconds: 4))
    let composition = try asset.retimed([(range(1_000, 2_000), speed(1, 8))])
    let (result, report) = try export(composition, of: asset)
    #expect(result.duration == MediaTime(seconds: 11))
    #expect(try await FFmpeg.probe(result.path, "format=duration") == ["11.000000"])
    #expect(
      try await FFmpeg.probe(result.path, "stream=duration,nb_frames", stream: "v")
        == ["11.000000,960"])
    #expect(try frameBytes(result.path) == frameBytes(asset.path))
    #expect(report.framesCopied == 960 && report.framesSkipped == 0 && report.framesEncoded == 0)
    #expect(
      report.maxTimeError.wholeNanoseconds == 0 && report.hiddenDuration.wholeNanoseconds == 0)
    #expect(report.audio == nil && report.avEndDifference == nil)
    // The expected times before, inside and after the slow second, computed without a time mapping.
    let times = try result.times()
    for (number, tick) in recipe.times.enumerated() {
      let expected =
        tick < 1_000_000 ? tick : tick < 2_000_000 ? 8 * tick - 7_000_000 : tick + 7_000_000
      #expect(times[number] == (Rational(Int128(expected), over: 1_000_000)))
    }
    #expect(try result.numbers() == (0..<960).map(Int.init))
  }

  @Test(arguments: [false, true])
  func `A retimed H.264 passthrough decodes to the source frames`(isReordered: Bool) throws {
    let recipe = MovieRecipe.constant(240, count: 480).h264(gop: 60, reordered: isReordered)
    let asset = try Asset.made(recipe, in: directory)
    let composition = try asset.retimed([
      (range(333, 1_001), speed(1, 8)), (range(1_500, 1_750), speed(3)),
    ])
    let (result, report) = try export(composition, of: asset)
    #expect(report.framesCopied == 480)
    #expect(try frameBytes(result.path) == frameBytes(asset.path))
    var before = try FrameReader(asset)
    var after = try FrameReader(result)
    for index in 0..<480 {
      let same =
        try before.mediaFrame(at: index).packedBytes() == after.mediaFrame(at: index).packedBytes()
      #expect(same, "frame \(index)")
    }
    #expect(report.maxTimeError.wholeNanoseconds == 0)
  }

  /// The frame decoded last can differ from the frame shown last, and both have different
  /// durations.
  @Test(arguments: 57...62)
  func `A passthrough export of B-frames has the exact duration`(count: Int64) throws {
    let recipe = MovieRecipe.constant(240, count: count).h264(gop: 20, reordered: true)
    let asset = try Asset.made(recipe, in: directory)
    let last = MediaTime(recipe.times[Int(count) - 1] + 5, over: 1_000_000)
    let composition = try asset.retimed([
      (TimeRange(start: last, end: asset.duration), speed(1, 32))
    ])
    let (result, report) = try export(composition, of: asset)
    #expect(report.duration == composition.duration)
    #expect(result.duration == composition.duration)
    let again = try export(Composition(result), of: result, "again.mov")
    #expect(again.asset.duration == composition.duration)
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `Frame times that fit no timescale err by at most half a tick`()
    async throws
  {
    let asset = try Asset.made(.constant(240, count: 240), in: directory)
    let composition = try asset.retimed([(range(0, 1_000), speed(997, 101))])
    let (result, report) = try export(composition, of: asset)
    #expect(report.maxTimeError.wholeNanoseconds > 0)
    #expect(report.maxTimeError.wholeNanoseconds <= 500)
    #expect(result.videoTrack?.timescale == 1_000_000)
    let coarse = try Asset.made(
      .constant(30, count: 60, timescale: 15_360), in: directory, "coarse")
    let other = try export(
      coarse.retimed([(range(0, 1_000), speed(997, 101))]), of: coarse, "other.mov")
    #expect(other.asset.videoTrack?.timescale == 240_000)
    #expect(other.report.maxTimeError.wholeNanoseconds <= 2_084)
  }

  @Test(arguments: [
    (600, 8, 1, 240_000), (15_360, 1, 8, 245_760), (90_000, 1, 1, 270_000),
    (240_000, 1001, 1000, 240_240_000),
  ])
  func `The output timescale is a multiple of the source timescale`(
    timescale: Int32, above: Int64, below: Int64, expected: Int32
  ) throws {
    let asset = try Asset.made(.constant(240, count: 240, timescale: timescale), in: directory)
    let composition = try asset.retimed([(range(0, 1_000), speed(above, below))])
    let (result, report) = try export(composition, of: asset)
    if expected > 10_000_000 {
      #expect(result.videoTrack?.timescale == 240_000)
    } else {
      #expect(result.videoTrack?.timescale == expected)
      #expect(report.maxTimeError.wholeNanoseconds == 0)
    }
  }

  @Test func `Frame times stay distinct at 32 times speed`() throws {
    let recipe = MovieRecipe.constant(240, count: 960, timescale: 600)
      .h264(gop: 60, reordered: true)
    let asset = try Asset.made(recipe, in: directory)
    let composition = try asset.retimed([(range(0, 4_000), speed(32))])
    let (result, _) = try export(composition, of: asset)
    #expect(result.duration == (MediaTime(1, over: 8)))
    #expect(try result.numbers() == (0..<960).map(Int.init))
  }

  @Test func `Randomly retimed passthrough exports have exact frame times`() throws {
    let recipe = MovieRecipe.constant(240, count: 120).h264(gop: 30, reordered: true)
    let asset = try Asset.made(recipe, in: directory)
    let packets = try frameBytes(asset.path)
    var generator = SeededGenerator(seed: 42)
    for number in 0..<25 {
      var marks = Set((0..<6).map { _ in Int64.random(in: 0...500, using: &generator) }).sorted()
      if marks.count % 2 == 1 { marks.removeLast() }
      let changes = try stride(from: 0, to: marks.count, by: 2).map { position in
        (
          range: try range(marks[position], marks[position + 1]),
          speed: try speed(
            Int64.random(in: 1...8, using: &generator), Int64.random(in: 1...8, using: &generator))
        )
      }
      let composition = try asset.retimed(changes)
      let (result, report) = try export(composition, of: asset, "random-\(number).mov")
      #expect(try frameBytes(result.path) == packets)
      #expect(report.framesSkipped == 0)
      if report.maxTimeError.wholeNanoseconds == 0 {
        #expect(result.duration == composition.duration)
      }
    }
  }

  @Test func `A passthrough export copies all packets of fragmented movies`() throws {
    var recipe = MovieRecipe.constant(240, count: 240)
    recipe.fragmentMicroseconds = 100_000
    let asset = try Asset.made(recipe, in: directory)
    let composition = try asset.retimed([(range(250, 500), speed(1, 4))])
    let (result, report) = try export(composition, of: asset)
    #expect(result.duration == .milliseconds(1_750))
    #expect(report.maxTimeError.wholeNanoseconds == 0)
    #expect(try frameBytes(result.path) == frameBytes(asset.path))
  }

  /// The packets are larger than the buffers of libavformat, which hold about 256 KiB.
  @Test(arguments: ["mov", "mp4"], [nil, 100_000] as [Int64?])
  func `A passthrough export copies packets above 256 KiB completely`(
    container: String, fragment: Int64?
  ) throws {
    var recipe = MovieRecipe.constant(240, count: 12)
    (recipe.width, recipe.height) = (800, 608)
    recipe.hasNoise = true
    recipe.container = container
    recipe.fragmentMicroseconds = fragment
    recipe = recipe.h264(gop: 4, reordered: false, options: ["crf": "1"])
    let asset = try Asset.made(recipe, in: directory)
    let packets = try frameBytes(asset.path)
    #expect(packets.allSatisfy { $0.count > 1 << 18 })
    let composition = try asset.retimed([(range(0, 25), speed(1, 8))])
    let (result, report) = try export(composition, of: asset, "slow.\(container)")
    #expect(report.framesCopied == 12)
    #expect(try frameBytes(result.path) == packets)
    #expect(try result.numbers() == (0..<12).map(Int.init))
  }
}
