// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankExport
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Ramps, freeze frames, reversals and many ranges in any order, judged by what the exported file
/// shows at each instant.
struct MotionTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  private func settings(_ mode: ExportMode = .passthrough()) -> ExportSettings {
    var settings = ExportSettings(path: directory.file("moved.mov"), mode: mode)
    settings.overwrites = true
    return settings
  }

  /// The source frame that is visible at a time.
  private func frame(_ asset: Asset, at time: Rational, isBefore: Bool) throws -> Int? {
    try asset.times().lastIndex { isBefore ? $0 < time : $0 <= time }
  }

  /// The source frame that an output frame at an instant must show.
  ///
  /// It is the last frame that is due by then. A frame also counts as due if it is late by no more
  /// than the rounding and jitter of its source's frame times.
  private func expected(
    _ composition: Composition, _ asset: Asset, at instant: Rational
  ) throws -> Int? {
    for segment in composition.segments
    where segment.target.start.seconds <= instant && instant < segment.target.end.seconds {
      guard let mapping = segment.mapping else { return nil }
      let slack = try mapping.isReversed ? -asset.slack() : asset.slack()
      return try frame(
        asset, at: mapping.sourceSeconds(of: instant) + slack, isBefore: mapping.isReversed)
    }
    return nil
  }

  /// Exports, and checks what is shown at instants inside each segment.
  ///
  /// Within two ticks of a frame change, the frame before or after it may be shown.
  @discardableResult
  private func check(
    _ composition: Composition, of assets: [Asset], instants: Int64 = 400,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> (asset: Asset, report: ExportReport) {
    let session = try ExportSession(composition, of: assets)
    let report = try session.export(settings())
    let result = try Asset(path: report.path)
    let numbers = try result.numbers()
    let times = try result.times()
    let scale = try #require(result.videoTrack).timescale
    let tick = Rational(1, over: Int128(scale))
    let halfTick = try Rational(1_000_000_000, over: 2 * Int128(scale))
      .rounded(.towardPositiveInfinity)
    #expect(
      Int128(report.maxTimeError.wholeNanoseconds) <= halfTick, sourceLocation: sourceLocation)
    let ends = [result.duration.seconds, composition.duration.seconds].sorted()
    #expect(ends[1] - ends[0] <= tick, sourceLocation: sourceLocation)
    var wrong: [String] = []
    for segment in composition.segments {
      let mapping = try #require(segment.mapping)
      let asset = try #require(assets.first { $0.path == segment.source?.path })
      let count = max(
        2,
        Int128(
          Double(instants) * segment.target.duration.doubleValue
            / composition.duration.doubleValue))
      let slack =
        try [mapping.speed(at: .zero), mapping.speed(at: composition.duration.seconds)]
        .map { ($0 < .zero ? -$0 : $0) * tick }.max() ?? tick
      for number in 0..<count {
        let instant =
          segment.target.duration * Rational(2 * number + 1, over: 2 * count)
          + segment.target.start.seconds
        let shown = times.lastIndex { $0 <= instant }.flatMap { numbers[$0] }
        let time = try mapping.sourceSeconds(of: instant)
        let early = max(mapping.sourceStart, time - slack - slack)
        let late = min(mapping.sourceEnd, time + slack + slack)
        let allowed = try [time, early, late].map {
          try frame(
            asset, at: $0,
            isBefore: mapping.isReversed || (mapping.motion != .hold && $0 == mapping.sourceEnd))
        }
        if !allowed.contains(shown) {
          wrong.append("\(instant.doubleValue) s: \(shown ?? -1), not \(allowed) in \(segment)")
        }
      }
    }
    #expect(
      wrong.isEmpty, "\(wrong.count): \(wrong.prefix(3))", sourceLocation: sourceLocation)
    return (result, report)
  }

  private func mjpeg(_ name: String = "clip", _ count: Int64 = 120) throws -> Asset {
    try .made(.constant(60, count: count), in: directory, name)
  }

  @Test(arguments: SpeedRamp.Easing.allCases)
  func `A passthrough speed ramp shows each frame once at its time`(
    easing: SpeedRamp.Easing
  ) throws {
    let recipe = MovieRecipe.constant(240, count: 480).h264(gop: 60, reordered: true)
    let asset = try Asset.made(recipe, in: directory)
    typealias Point = Composition.SpeedPoint
    let composition = try Composition.ramped(
      asset.mediaSource(),
      points: [
        Point(.milliseconds(500), .normal), Point(.milliseconds(800), speed(1, 8)),
        Point(.milliseconds(1_100), speed(1, 8)), Point(.milliseconds(1_500), .normal),
      ], easing: easing)
    let (result, report) = try check(composition, of: [asset])
    #expect(report.framesCopied == 480 && report.framesSkipped == 0)
    #expect(try frameBytes(result.path) == frameBytes(asset.path))
    #expect(report.maxTimeError.wholeNanoseconds <= 2_100)
    // The duration is 0.5 + 0.3·16/9 + 0.3·8 + 0.4·16/9 + 0.5 s.
    #expect(composition.duration.seconds == (Rational(209, over: 45)))
  }

  @Test func `A passthrough freeze frame only lengthens a packet`() throws {
    for recipe in [
      MovieRecipe.constant(60, count: 120),
      MovieRecipe.constant(60, count: 120).h264(gop: 30, reordered: true),
    ] {
      let asset = try Asset.made(recipe, in: directory, recipe.codec)
      for time in [0, 505, 1_000, 2_000] as [Int64] {
        var composition = try Composition(asset)
        try composition.freezeFrame(at: .milliseconds(time), for: .milliseconds(700))
        let (result, report) = try check(composition, of: [asset], instants: 135)
        #expect(report.framesCopied == 120)
        #expect(try frameBytes(result.path) == frameBytes(asset.path))
      }
    }
  }

  @Test func `Motion JPEG frames are copied in reverse order`() throws {
    let asset = try mjpeg()
    var composition = try Composition(asset)
    try composition.reverse(range(0, 2_000))
    let (result, report) = try check(composition, of: [asset])
    #expect(try result.numbers() == (0..<120).reversed().map { $0 })
    #expect(report.framesCopied == 120)
    #expect(try frameBytes(result.path) == frameBytes(asset.path).reversed())
    // The clip plays forward, then backward more slowly with a freeze frame, and then forward
    // again.
    var swing = try Composition(asset)
    try swing.insertTimeRange(range(500, 1_007), of: asset.mediaSource(), at: .milliseconds(1_007))
    try swing.reverse(range(1_007, 1_514))
    try swing.scaleTimeRange(range(1_007, 1_514), toDuration: .milliseconds(2_028))
    try swing.freezeFrame(at: .milliseconds(2_000), for: .milliseconds(333))
    try check(swing, of: [asset])
  }

  @Test func `Copying H.264 in reverse is refused with a reason`() throws {
    let recipe = MovieRecipe.constant(60, count: 60, timescale: 60_000)
      .h264(gop: 30, reordered: false)
    let asset = try Asset.made(recipe, in: directory)
    var composition = try Composition(asset)
    try composition.reverse(range(0, 500))
    let error = try refusal(composition, of: asset, settings())
    #expect(error.code == .unsupportedSource)
    #expect(error.message.contains("backwards from 0.5 to 0 s"), "\(error)")
    #expect(error.recovery?.steps == [.change(.outputFrameRate)])
    // A rendered export has one output frame per frame period.
    let rate = FrameRate(60)
    let report = try ExportSession(composition, of: asset).export(settings(.constant(rate)))
    let found = try Asset(path: report.path).numbers()
    #expect(found == (0..<30).reversed().map { $0 } + (30..<60).map { $0 })
  }

  @Test func `Speed ramps and reversal show the source frame that is due`()
    throws
  {
    let asset = try mjpeg()
    var composition = try RetimingPreset.impact.composition(
      of: asset.mediaSource(), at: .milliseconds(900))
    try composition.freezeFrame(at: .milliseconds(2_000), for: .milliseconds(500))
    try composition.reverse(range(2_200, 4_000))
    let report = try ExportSession(composition, of: asset)
      .export(settings(.constant(FrameRate(30))))
    let found = try Asset(path: report.path).numbers()
    var wrong: [String] = []
    for (slot, number) in found.enumerated() {
      let instant = Rational(Int128(slot), over: 30)
      let due = try expected(composition, asset, at: instant)
      if number != due { wrong.append("slot \(slot): \(number ?? -1), not \(due ?? -1)") }
    }
    #expect(wrong.isEmpty, "\(wrong.prefix(5))")
    let slots = composition.duration.seconds * Rational(30)
    #expect(try Int128(found.count) == slots.rounded(.towardPositiveInfinity))
  }

  @Test func `Only clips with the same format are copied into one track`() throws {
    let assets = [try mjpeg("one", 60), try mjpeg("two", 90)]
    var composition = Composition()
    for (number, start) in [(1, 100), (0, 0), (1, 700), (0, 555)] as [(Int, Int64)] {
      try composition.insertTimeRange(
        range(start, start + 333), of: assets[number].mediaSource(), at: composition.duration)
    }
    try check(composition, of: assets)
    let other = try Asset.made(
      MovieRecipe.constant(60, count: 30, timescale: 60_000).h264(gop: 30, reordered: false),
      in: directory, "other")
    try composition.insertTimeRange(range(0, 500), of: other.mediaSource(), at: .zero)
    let error = #expect(throws: MediaError.self) {
      try ExportSession(composition, of: assets + [other]).plan(settings())
    }
    #expect(error?.code == .unsupportedSource)
    #expect(throws: MediaError.self) { try ExportSession(composition, of: assets) }
    // A rendered export can combine clips of different kinds.
    let report = try ExportSession(composition, of: assets + [other])
      .export(settings(.constant(FrameRate(60))))
    #expect(try Asset(path: report.path).numbers().prefix(30) == (0..<30).map { $0 }[...])
  }

  @Test(
    "A passthrough export of random edits shows frames on time",
    arguments: 0..<12 as Range<UInt64>)
  func randomRanges(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var recipe = MovieRecipe.constant(60, count: 120)
    if seed % 3 == 0 {
      // Frame times vary, as in a movie of a phone.
      recipe.times = recipe.times.map { $0 + Int64.random(in: 0...9_000, using: &random) }
    }
    let asset = try Asset.made(recipe, in: directory)
    let source = try asset.mediaSource()
    let last = try asset.duration.converted(to: 1_000, rounding: .towardZero).value
    var composition = Composition()
    let speeds = try [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (3, 1)].map { try speed($0, $1) }
    for _ in 0..<Int.random(in: 1...50, using: &random) {
      let start = Int64.random(in: 0..<last - 60, using: &random)
      let part = try range(start, .random(in: start + 30...min(last, start + 400), using: &random))
      do {
        try composition.edit { edited in
          let position = edited.duration
          try edited.insertTimeRange(part, of: source, at: position)
          let inserted = try TimeRange(start: position, end: edited.duration)
          switch Int.random(in: 0..<6, using: &random) {
          case 0: try edited.reverse(inserted)
          case 1: try edited.freezeFrame(at: position, for: .milliseconds(123))
          case 2, 3:
            let ramp = SpeedRamp(
              from: try #require(speeds.randomElement(using: &random)),
              to: try #require(speeds.randomElement(using: &random)),
              easing: Bool.random(using: &random) ? .linear : .easeInOut)
            try edited.setSpeedRamp(ramp, in: inserted)
          default:
            let length = try MediaTime(
              inserted.duration
                * Rational(
                  .random(in: 1...6, using: &random), over: .random(in: 1...4, using: &random)))
            try edited.scaleTimeRange(inserted, toDuration: length)
          }
        }
      } catch let error as MediaError {
        // A sum of many odd fractions may not fit in a `MediaTime`. This range is then left out.
        #expect(error.code == .notExact || error.code == .overflow)
      }
    }
    if composition.segments.isEmpty { composition = try Composition(asset) }
    try check(composition, of: [asset], instants: 300)
  }

  @Test func `Audio follows the speed ramps and reversals of the video`() throws {
    var recipe = MovieRecipe.constant(60, count: 120)
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.codec = "pcm_s16le"
    recipe.audio?.sampleCount = 96_000
    recipe.audio?.clicks = [24_000, 84_000]
    let asset = try Asset.made(recipe, in: directory)
    // After a reversal, the click at 0.5 s begins 0.5 s before the end and is mirrored.
    var rotated = try Composition(asset)
    try rotated.reverse(range(0, 2_000))
    let report = try ExportSession(rotated, of: asset).export(settings())
    let backwards = try Asset(path: report.path).audio()
    #expect(backwards == (try asset.audio()).map { $0.reversed() })
    #expect(report.avEndDifference?.wholeNanoseconds == 0)
    // The click after a ramp is at the time that the exact curve gives, within a millisecond.
    let composition = try Composition.ramped(
      asset.mediaSource(),
      points: [
        Composition.SpeedPoint(.milliseconds(250), .normal),
        Composition.SpeedPoint(.milliseconds(750), speed(1, 4)),
        Composition.SpeedPoint(.milliseconds(750), .normal),
      ])
    var varispeed = settings()
    varispeed.audioTimePitchAlgorithm = .varispeed
    let ramped = try ExportSession(composition, of: asset).export(varispeed)
    #expect(abs(ramped.avEndDifference?.wholeNanoseconds ?? .max) <= 20_834)
    let samples = try #require(try Asset(path: ramped.path).audio().first)
    for click in [24_000, 84_000] as [Int128] {
      let time = try composition.targetTimes(
        ofSource: Rational(click, over: 48_000), in: asset.mediaSource(), timescale: 48_000,
        rounding: .halfAwayFromZero)
      let position = Int(try #require(time.first).value)
      let near = samples[max(0, position - 2_000)..<min(samples.count, position + 2_000)]
      let loudest = try #require(near.indices.max { abs(near[$0]) < abs(near[$1]) })
      #expect((-48...96).contains(loudest - position), "\(loudest) for \(position)")
    }
    // The composition with the ramp is reversed.
    var back = composition
    try back.reverse(TimeRange(start: .zero, end: back.duration))
    let mirrored = try ExportSession(back, of: asset).export(varispeed)
    let others = Array(try #require(try Asset(path: mirrored.path).audio().first).reversed())
    #expect(others.count == samples.count)
    for (one, other) in [(0, 60_000), (60_000, samples.count)] {
      let (there, here) = (samples[one..<other], others[one..<other])
      let loudest = try #require(there.indices.max { abs(there[$0]) < abs(there[$1]) })
      let position = try #require(here.indices.max { abs(here[$0]) < abs(here[$1]) })
      #expect(abs(loudest - position) <= 24, "\(position) for \(loudest)")
    }
  }
}
