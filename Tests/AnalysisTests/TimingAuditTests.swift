// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Audits movies that have deliberate faults in their times and images.
struct TimingAuditTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func asset(_ recipe: MovieRecipe, _ name: String = "clip") throws -> Asset {
    try recipe.asset(at: scratch.file("\(name).\(recipe.container)"))
  }

  enum Codec: CaseIterable { case mjpeg, ffv1, h264, reorderedH264 }

  private func recipe(_ codec: Codec, _ rate: Int64 = 240, count: Int64 = 160) -> MovieRecipe {
    var recipe = MovieRecipe.constant(rate, count: count, timescale: 240_000)
    recipe.height = 64
    switch codec {
    case .mjpeg: return recipe
    case .ffv1:
      recipe.codec = "ffv1"
      recipe.pixelFormat = .yuv420p
      return recipe
    case .h264: return recipe.h264(gop: 40, reordered: false)
    case .reorderedH264: return recipe.h264(gop: 40, reordered: true)
    }
  }

  @Test(arguments: Codec.allCases)
  func `A timing audit finds gaps and repeated or frozen frames`(
    _ codec: Codec
  ) throws {
    var recipe = recipe(codec)
    #expect(try TimingAudit(of: asset(recipe, "whole")).isOK)
    for index in 41..<160 { recipe.times[index] += 3_000 }
    for index in 120..<160 { recipe.times[index] += 1_000 }
    recipe.end += 4_000
    recipe.numbers = (0..<160).map { index in
      switch index {
      case 60: 59
      case 80...95: 79
      default: index
      }
    }
    var decoded = 0
    let audit = try TimingAudit(of: asset(recipe), expecting: 240) { decoded = $0 }
    #expect(decoded == 160)
    #expect(audit.problems == [.gaps, .duplicates, .frozen])
    #expect(audit.gaps.map(\.afterIndex) == [40, 119] && audit.gaps.map(\.count) == [3, 1])
    #expect(audit.gaps[0].time == MediaTime(41, over: 240))
    #expect(audit.duplicates.map(\.index) == [60] && audit.duplicates.map(\.ofIndex) == [59])
    #expect(audit.frozen.map(\.firstIndex) == [79] && audit.frozen.map(\.lastIndex) == [95])
    #expect(audit.frozen.first?.end == MediaTime(99, over: 240))
    #expect(audit.measuredFrameRate == Rational(240))
    #expect(audit.intervals?.p50 == MediaTime(1, over: 240))
    #expect(audit.intervals?.max == MediaTime(4, over: 240))
    let times = try TimingAudit(of: Asset(path: scratch.file("clip.mov")), comparesImages: false)
    #expect(times.problems == [.gaps] && times.gaps == audit.gaps)
    #expect(try throughJSON(audit) == audit)
  }

  @Test func `An audit reports a frame rate tag that the frames contradict`() throws {
    var twice = recipe(.mjpeg)
    twice.metadata = ["com.android.capture.fps": "240"]
    #expect(try TimingAudit(of: asset(twice), expecting: 240).isOK)
    twice.numbers = (0..<160).map { $0 / 2 }
    let audit = try TimingAudit(of: asset(twice), expecting: 240)
    #expect(audit.problems == [.duplicates, .unexpectedRate, .statedRate])
    #expect(audit.distinctFrameRate == Rational(120) && audit.duplicates.count >= 78)
    #expect(
      try TimingAudit(of: asset(twice), expecting: 120).problems.contains(.unexpectedRate) == false)
    var half = recipe(.mjpeg, 120)
    half.metadata = ["com.android.capture.fps": "240"]
    #expect(try TimingAudit(of: asset(half)).problems == [.statedRate])
    #expect(
      try TimingAudit(of: asset(half), expecting: 240).problems == [.unexpectedRate, .statedRate])
    // A slow-motion movie plays slower than it was captured.
    var slow = recipe(.mjpeg, 30, count: 40)
    slow.metadata = ["com.android.capture.fps": "240"]
    let slowed = try TimingAudit(of: asset(slow), expecting: 240)
    #expect(slowed.isOK && slowed.captureFrameRateSource == "com.android.capture.fps")
    #expect(try TimingAudit(of: asset(slow), expecting: 120).problems == [.unexpectedRate])
    // In a recording of this library, the frame times are the capture times.
    slow.metadata["com.overcrank.recording"] =
      #"{"device":"d","mode":"m","first_capture_ns":0,"first_sequence":0,"gaps":[]}"#
    #expect(try TimingAudit(of: asset(slow)).problems == [.statedRate])
    let unknown = try TimingAudit(of: asset(recipe(.mjpeg, 30, count: 40)))
    #expect(
      unknown.isOK && unknown.captureFrameRate == nil && unknown.captureFrameRateAgrees == nil)
  }

  @Test func `A timing chart shows the same data as SVG and as PNG`() throws {
    var recipe = recipe(.mjpeg)
    for index in 80..<160 { recipe.times[index] += 5_000 }
    recipe.end += 5_000
    recipe.numbers = (0..<160).map { $0 == 30 ? 29 : $0 }
    let asset = try asset(recipe)
    let frames = try #require(asset.videoTrack).frames
    let audit = try TimingAudit(of: asset)
    let chart = TimingChart(audit, frames: frames, title: "<a> & \u{7}b.mov")
    let svg = chart.svg()
    #expect(svg.hasPrefix("<svg ") && svg.hasSuffix("</svg>\n"))
    #expect(svg.contains("&lt;a&gt; &amp; ?b.mov") && svg.contains("1 gaps (5 missing)"))
    let rectangles = svg.split(separator: "\n").filter { $0.hasPrefix("<rect") }
    // Each color is also in the legend.
    #expect(rectangles.count { $0.contains("#c82424") } == 2)
    #expect(rectangles.count { $0.contains("#e08e00") } == 2)
    for label in [
      "time in s", "interval in ms", "number (log)", "interval", "gap", "repeated frame",
      "expected, 4.167 ms (240 fps)",
    ] {
      #expect(svg.contains(">\(label)</text>"), "\(label)")
    }
    #expect(svg.matches(of: /stroke-dasharray/).count == 2)
    let image = try chart.png().withUnsafeBytes {
      try DecodedImage(decoding: $0, codec: "png", width: 1_200, height: 680, bytesPerPixel: 3)
    }
    func pixel(_ x: Int, _ y: Int) -> [UInt8] {
      Array(image.bytes[(y * 1_200 + x) * 3..<(y * 1_200 + x) * 3 + 3])
    }
    // In the chart, the mark of the gap is after frame 79 of 165 periods. It is the highest mark,
    // and ends a tenth below the top of the axis.
    let gap = 110 + Int(79.0 / 164 * 1_059)
    #expect(pixel(gap, 390 - Int(280 / 1.1)) == [200, 36, 36])
    #expect(pixel(110 + Int(30.0 / 164 * 1_059), 120) == [224, 142, 0])
    #expect(pixel(gap - 8, 391 - Int(280 / 6.6)) == [43, 92, 164])
    #expect(pixel(600, 250) == [255, 255, 255])
    // The expected interval is a sixth of the gap's, and its dashed line has 10 of 16 pixels.
    let line = 390 - Int(280 / 6.6)
    let dashes = (110..<1_170).count { pixel($0, line) == [46, 133, 64] }
    #expect(dashes > 500)
  }

  @Test func `The labels of a chart are inside it`() throws {
    var drawing = ChartDrawing(width: 400, height: 100)
    for (x, anchor) in [(396, ChartDrawing.Anchor.middle), (2, .middle), (380, .start), (4, .end)] {
      drawing.write("123.456", x: x, y: 20, anchor: anchor)
    }
    let positions = drawing.svg().matches(of: /<text x="(-?[0-9]+)"/).map { Int($0.1) }
    // The text is 82 pixels wide, and has 4 pixels beside it.
    #expect(positions == [355, 45, 314, 86])
  }

  @Test func `A chart that cannot be drawn says what is missing`() {
    func code(_ kind: CallFailure.Kind) -> MediaError.Code {
      TimingChart.pngError(CallFailure("draw", "an image", 1, kind, reason: "none")).code
    }
    #expect(code(.notFound) == .missingComponent && code(.outOfMemory) == .outOfMemory)
    #expect(code(.other) == .writeFailed)
  }

  @Test func `Audits a one-frame movie and refuses a movie without video`() throws {
    let single = try TimingAudit(of: asset(recipe(.mjpeg, count: 1)), expecting: 240)
    #expect(single.intervals == nil && single.problems == [.unexpectedRate])
    var audio = MovieRecipe()
    audio.audio = MovieRecipe.Audio()
    audio.audio?.sampleCount = 4_800
    audio.audio?.codec = "pcm_s16le"
    let asset = try asset(audio)
    #expect(throws: MediaError.self) { try TimingAudit(of: asset) }
  }
}
