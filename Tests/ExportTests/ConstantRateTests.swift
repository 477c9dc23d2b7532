// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

/// Exports at a constant frame rate.
///
/// Each output frame shows the last source frame that is due, by its painted number.
struct ConstantRateTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func settings(
    _ numerator: Int64, _ denominator: Int64 = 1, _ codec: VideoEncoding = .h264()
  ) throws -> ExportSettings {
    var settings = ExportSettings(
      path: directory.file("out.mov"),
      mode: .constant(FrameRate(Int(numerator), over: Int(denominator))))
    settings.render { $0.encoding = codec }
    settings.overwrites = true
    return settings
  }

  /// Exports, and checks each output frame against the definition of a constant rate.
  @discardableResult
  private func export(
    _ composition: Composition, of asset: Asset, _ settings: ExportSettings, count: Int,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> (asset: Asset, report: ExportReport) {
    guard case .constant(let rate, _) = settings.mode else {
      throw Unexpected(description: "no constant rate")
    }
    let session = ExportSession(composition, of: asset)
    var planned = try session.plan(settings)
    let report = try session.export(settings)
    planned = try session.plan(settings)
    #expect(planned.framesEncoded == report.framesEncoded, sourceLocation: sourceLocation)
    let result = try Asset(path: report.path)
    let numbers = try result.numbers()
    let times = try result.times()
    #expect(numbers.count == count, sourceLocation: sourceLocation)
    #expect(report.framesEncoded == Int64(count), sourceLocation: sourceLocation)
    let shown = try composition.shownTimes(of: asset, isForSlots: true)
    var used: Set<Int> = []
    var repeated: Int64 = 0
    var previous: Int?
    for (slot, number) in numbers.enumerated() {
      let time = Rational(Int128(slot) * Int128(rate.denominator), over: Int128(rate.numerator))
      #expect(times[slot] == time, sourceLocation: sourceLocation)
      let due = try #require(shown.lastIndex { $0.time <= time })
      #expect(number == shown[due].index, "slot \(slot)", sourceLocation: sourceLocation)
      if previous == due { repeated += 1 }
      used.insert(due)
      previous = due
    }
    #expect(report.framesDuplicated == repeated, sourceLocation: sourceLocation)
    #expect(
      report.framesSkipped == Int64(shown.count - used.count), sourceLocation: sourceLocation)
    #expect(result.duration == report.duration, sourceLocation: sourceLocation)
    #expect(report.maxTimeError.wholeNanoseconds == 0, sourceLocation: sourceLocation)
    return (result, report)
  }

  @Test(.enabled(if: FFmpeg.isInstalled, "the ffmpeg command is not installed"))
  func `An export of 11 s at 30 fps has 330 frames`() async throws {
    let asset = try Asset.made(.constant(240, count: 960), in: directory)
    let composition = try asset.retimed([(range(1_000, 2_000), speed(1, 8))])
    let (result, _) = try export(composition, of: asset, settings(30), count: 330)
    #expect(result.videoTrack?.codec == .h264)
    #expect(result.duration == MediaTime(seconds: 11))
    #expect(
      try await FFmpeg.probe(result.path, "stream=r_frame_rate,nb_frames,pix_fmt", stream: "v")
        == ["yuv420p,30/1,330"])
  }

  /// Ticks of microseconds or 1/600 s cannot represent 1/240 s.
  ///
  /// The time of a frame may then be just after the time of its output frame.
  @Test(arguments: [240_000, 1_000_000, 600, 1_000] as [Int32])
  func `Rounding of source frame times repeats no exported frame`(timescale: Int32) throws {
    let asset = try Asset.made(.constant(240, count: 960, timescale: timescale), in: directory)
    let composition = try asset.retimed([(range(1_000, 2_000), speed(1, 8))])
    let (_, report) = try export(composition, of: asset, settings(30), count: 330)
    #expect(report.framesDuplicated == 0)
    #expect(report.framesSkipped == 630)
  }

  @Test(arguments: VideoEncoding.all)
  func `An export stores every frame in every codec`(codec: VideoEncoding) throws {
    let asset = try Asset.made(.constant(100, count: 100), in: directory)
    let composition = try asset.retimed([(range(200, 400), speed(1, 4))])
    let (result, _) = try export(
      composition, of: asset, settings(60_000, 1_001, codec), count: 96)
    #expect(result.videoTrack?.codec == codec.codec)
  }

  /// Source frames of 10 ms.
  ///
  /// A source of 333 ms, for example, is 9.99 output frames at 30 fps.
  @Test(arguments: [(330, 10), (340, 11), (360, 11), (370, 12), (10, 1), (2_000, 60)])
  func `An export rounds a partial last frame up to a whole one`(milliseconds: Int64, count: Int)
    throws
  {
    let asset = try Asset.made(.constant(100, count: milliseconds / 10), in: directory)
    try export(Composition(asset), of: asset, settings(30), count: count)
  }

  @Test func `An end less than a tick after the last frame adds no frame`() throws {
    // 100 frames at 30 fps end at 3.333333 s. Rounded up to a whole tick, the end is a third of a
    // tick late.
    var recipe = MovieRecipe.constant(30, count: 100, timescale: 1_000_000)
    recipe.end += 1
    let asset = try Asset.made(recipe, in: directory)
    try export(Composition(asset), of: asset, settings(30), count: 100)
    // The same source at 1/8 speed, where a source tick is eight times as long.
    let slow = try asset.retimed([(TimeRange(duration: asset.duration), speed(1, 8))])
    try export(slow, of: asset, settings(30), count: 800)
  }

  @Test func `A source with uneven times shows the frame due at each time`() throws {
    var recipe = MovieRecipe.constant(120, count: 240).h264(gop: 40, reordered: true)
    var generator = SeededGenerator(seed: 3)
    recipe.times = recipe.times.map {
      max(0, $0 + Int64.random(in: -3_000...3_000, using: &generator))
    }
    recipe.times[0] = 0
    recipe.times.sort()
    let asset = try Asset.made(recipe, in: directory)
    #expect(asset.videoTrack?.frames.isVariable == true)
    let composition = try asset.retimed([
      (range(300, 700), speed(1, 5)), (range(900, 1_500), speed(7, 2)),
    ])
    let duration = composition.duration.seconds
    let slots = try (duration * Rational(48)).rounded(.towardPositiveInfinity)
    try export(composition, of: asset, settings(48), count: Int(slots))
  }

  @Test func `Rendered ranges may start anywhere and come in any order`() throws {
    let asset = try Asset.made(
      MovieRecipe.constant(100, count: 100).h264(gop: 50, reordered: true), in: directory)
    var composition = Composition()
    for part in [try range(510, 610), try range(110, 210), try range(110, 210)] {
      try composition.insertTimeRange(part, of: asset.mediaSource(), at: composition.duration)
    }
    try export(composition, of: asset, settings(100), count: 30)
  }

  @Test func `A gap in a composition renders as black`() throws {
    let asset = try Asset.made(.constant(100, count: 20), in: directory)
    var composition = try Composition(asset)
    try composition.insertEmptyTimeRange(range(100, 150))
    for codec in VideoEncoding.all {
      let report = try ExportSession(composition, of: asset).export(settings(100, 1, codec))
      #expect(report.framesEncoded == 25)
      let result = try Asset(path: report.path)
      var reader = try FrameReader(result)
      var writer = try RawFrameWriter(.gray)
      for slot in 0..<25 {
        let levels = try writer.data(of: slot, from: &reader)
        if (10..<15).contains(slot) {
          #expect(levels.allSatisfy { $0 < 4 }, "\(codec) \(slot)")
        } else {
          let number = PaintedBlocks.number(in: try reader.mediaFrame(at: slot))
          #expect(number == (slot < 10 ? slot : slot - 5))
        }
      }
    }
  }

  @Test(arguments: VideoEncoding.all)
  func `Odd frame sizes are kept or padded and never cropped`(codec: VideoEncoding) throws {
    var recipe = MovieRecipe.constant(50, count: 10)
    recipe.width = PaintedBlocks.width + 1
    recipe.height = PaintedBlocks.height + 1
    let asset = try Asset.made(recipe, in: directory)
    let (result, _) = try export(Composition(asset), of: asset, settings(50, 1, codec), count: 10)
    let video = try #require(result.videoTrack)
    #expect(video.width == recipe.width + (codec == .h264() || codec == .hevc() ? 1 : 0))
    #expect(video.height == recipe.height + (codec == .h264() || codec == .hevc() ? 1 : 0))
  }

  /// The painted code values 32 and 208 in the full range of JPEG must be the same gray levels
  /// after the export.
  @Test(arguments: VideoEncoding.all)
  func `Gray levels survive a change of codec and color range`(codec: VideoEncoding) throws {
    let asset = try Asset.made(.constant(30, count: 6, timescale: 90_000), in: directory)
    let report = try ExportSession(Composition(asset), of: asset).export(settings(30, 1, codec))
    var reader = try FrameReader(try Asset(path: report.path))
    var writer = try RawFrameWriter(.gray)
    let levels = try writer.data(of: 5, from: &reader)
    // Frame 5 is binary 101, so the painted blocks are white, black and white.
    for (block, expected) in [(0, 208), (1, 32), (2, 208)] {
      let level = Int(levels[4 * PaintedBlocks.width + block * 8 + 4])
      #expect(abs(level - expected) <= 4, "\(codec), block \(block): \(level)")
    }
  }
}
