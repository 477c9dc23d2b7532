// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

@testable import OvercrankExport

/// Exports of ranges that play backward, in codecs whose frames depend on earlier frames.
struct ReverseExportTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func clip() throws -> Asset {
    var recipe = MovieRecipe.constant(60, count: 120, timescale: 60_000)
      .h264(gop: 30, reordered: true)
    var audio = MovieRecipe.Audio()
    audio.codec = "pcm_s16le"
    audio.sampleCount = 96_000
    audio.clicks = [12_000, 60_000]
    recipe.audio = audio
    return try Asset.made(recipe, in: directory)
  }

  private func source(
    _ asset: Asset, _ requests: [Int], limit: Int = FrameSource.keptByteLimit,
    isStopped: @escaping () -> Bool = { false }
  ) -> FrameSource {
    FrameSource(
      asset, requests: requests, .stop, threadCount: 1, keptByteLimit: limit, isStopped: isStopped)
  }

  /// Requests frames, checks the numbers painted in them, and returns the largest number of frames
  /// kept at once.
  private func read(_ source: FrameSource, _ requests: [Int]) throws -> Int {
    var maximum = 0
    for index in requests {
      let frame = try #require(try source.mediaFrame(at: index, mayLeaveOut: false))
      #expect(PaintedBlocks.number(in: frame) == index)
      maximum = max(maximum, source.kept.count)
    }
    return maximum
  }

  // A decoder needs a few packets of the next GOP before it returns the last frame of a GOP.
  private static let delay = 8

  @Test func `Reading frames in reverse decodes each GOP once`() throws {
    let requests = Array((0..<120).reversed())
    let source = source(try clip(), requests)
    #expect(try read(source, requests) == 30)
    #expect((120...120 + 4 * Self.delay).contains(source.sentPacketCount))
  }

  @Test func `A reversed GOP above the memory limit is decoded in parts`() throws {
    let asset = try clip()
    var reader = try FrameReader(asset)
    let size = try reader.mediaFrame(at: 0).byteCount
    let requests = Array((0..<120).reversed())
    let source = source(asset, requests, limit: 10 * size)
    #expect(try read(source, requests) == 10)
    // Each GOP is decoded in parts that end at its frames 29, 19 and 9. That is 60 decoded frames
    // per GOP, and 240 for four.
    #expect((240...240 + 12 * Self.delay).contains(source.sentPacketCount))
  }

  @Test func `Reversing the read direction decodes a GOP at most once more`() throws {
    let requests = Array(0...20) + (5..<20).reversed() + [5, 5, 6, 7] + (0..<7).reversed()
    let source = source(try clip(), requests)
    _ = try read(source, requests)
    #expect(source.sentPacketCount <= 5 * (30 + Self.delay))
  }

  @Test func `Reverse reading keeps only requested frames in memory`() throws {
    let requests = [110, 100, 91, 50, 31]
    #expect(try read(source(try clip(), requests), requests) == 3)
  }

  @Test func `A cancelled reverse read stops before the end of a GOP`() throws {
    let source = source(try clip(), [29, 28], isStopped: { true })
    let error = #expect(throws: MediaError.self) {
      try source.mediaFrame(at: 29, mayLeaveOut: false)
    }
    #expect(error?.code == .cancelled)
  }

  @Test func `Reversal at half speed shows each frame twice`()
    throws
  {
    let asset = try clip()
    let half = Composition.SpeedChange(
      Speed(1, over: 2), in: try range(500, 1_500), isReversed: true)
    let composition = try Composition.retimed(asset.mediaSource(), changes: [half])
    var settings = ExportSettings(path: directory.file("back.mov"), mode: .constant(FrameRate(60)))
    settings.audioTimePitchAlgorithm = .varispeed
    let report = try ExportSession(composition, of: asset).export(settings)
    let backwards = (30..<90).reversed().flatMap { [$0, $0] }
    let result = try Asset(path: report.path)
    #expect(try result.numbers() == Array(0..<30) + backwards + Array(90..<120))
    // The click at 1.25 s is 0.25 s before the end of the reversed range, so it plays 0.5 s after
    // the start of that range. The click at 0.25 s is outside of the range.
    let loud = try result.audio()[0].enumerated().filter { $0.element > 0.3 }.map(\.offset)
    let first = try #require(loud.first)
    let second = try #require(loud.first { $0 > first + 4_800 })
    #expect((first - 12_000).magnitude <= 2)
    let end = 24_000 + 2 * (72_000 - 60_000)
    #expect((second + 2 * MovieRecipe.Audio.clickLength - end).magnitude <= 4)
  }

  @Test func `Trimming a reversed composition keeps its frames reversed`() throws {
    let asset = try clip()
    let media = try asset.mediaSource()
    let back = Composition.SpeedChange(.normal, in: try range(500, 1_500), isReversed: true)
    let whole = try Composition.retimed(media, changes: [back])
    // The kept range overlaps the start of the reversed range, its end, or is inside. The last case
    // has two ranges, the later one first.
    let cases: [(kept: [(Int64, Int64)], frames: [Int])] = [
      ([(250, 1_000)], Array(15..<30) + (30..<60).reversed()),
      ([(1_000, 2_000)], (60..<90).reversed() + Array(90..<120)),
      ([(750, 1_000)], (45..<60).reversed()),
      ([(1_000, 1_250), (500, 750)], (60..<75).reversed() + (30..<45).reversed()),
    ]
    for (number, (kept, frames)) in cases.enumerated() {
      let trimmed = try whole.trimmed(to: kept.map { try range($0.0, $0.1) }, of: media)
      let settings = ExportSettings(
        path: directory.file("trimmed\(number).mov"), mode: .constant(FrameRate(60)))
      let report = try ExportSession(trimmed, of: asset).export(settings)
      #expect(try Asset(path: report.path).numbers() == frames, "\(kept)")
    }
  }
}
