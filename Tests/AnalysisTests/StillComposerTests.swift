// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankAnalysis

/// Still images made of many frames, checked by the painted frame numbers and the painted ball.
struct StillComposerTests {
  /// Crops a box out of an image.
  private static func part(_ image: StillImage, _ box: PixelRect) -> UprightFrames.Image {
    var result = UprightFrames.Image(width: box.width, height: box.height, bytes: [])
    for row in box.y..<box.y + box.height {
      let start = 3 * (row * image.pixels.width + box.x)
      result.bytes += image.pixels.bytes[start..<start + 3 * box.width]
    }
    return result
  }

  /// The number that `PaintedBlocks` painted.
  private static func number(_ image: UprightFrames.Image) -> Int {
    (0..<16).reduce(0) { number, block in
      let level = image.bytes[3 * (4 * image.width + block * 8 + 4)]
      return number | (level > 120 ? 1 << block : 0)
    }
  }

  @Test func `A contact sheet shows the chosen frames in rows`()
    throws
  {
    let scratch = try Scratch()
    let asset = try MovieRecipe.constant(240, count: 100).asset(at: scratch.file("a.mov"))
    let range = try TimeRange(
      start: MediaTime(seconds: 0), end: MediaTime(91, over: 240))
    let sheet = try StillComposer(asset, range: range)
      .contactSheet(StillComposer.SheetSettings(count: 10, columns: 4, frameWidth: 128))
    #expect(sheet.frames.map(\.index) == stride(from: 0, through: 90, by: 10).map { $0 })
    #expect(sheet.frames.map { Self.number(Self.part(sheet, $0.box)) } == sheet.frames.map(\.index))
    #expect(Set(sheet.frames.map(\.box.x)).count == 4 && Set(sheet.frames.map(\.box.y)).count == 3)
    #expect(sheet.frames[3].time == (try asset.videoTrack?.frames.time(ofFrame: 30)))
    let png = try sheet.pngData()
    #expect(png.prefix(8) == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    let decoded = try png.withUnsafeBytes {
      try DecodedImage(
        decoding: $0, codec: "png", width: sheet.pixels.width, height: sheet.pixels.height,
        bytesPerPixel: 3)
    }
    #expect(decoded.bytes == sheet.pixels.bytes)
  }

  /// A movie of a 9-pixel ball that moves 4 pixels per frame to the right.
  private static func ball(_ scratch: Scratch, count: Int = 40) throws -> Asset {
    try PaintedMovie(width: 180, height: 40, rate: 240, count: count)
      .write(
        to: scratch.file("ball.mov"),
        color: { frame, x, y in
          let inside = hypot(Double(x - 10 - 4 * frame), Double(y - 20)) <= 4.5
          return inside ? (220, 40, 20) : (UInt8(60 + x / 4), 90, 80)
        })
  }

  private static func isBall(_ image: StillImage, _ x: Int, _ y: Int = 20) -> Bool {
    let start = 3 * (y * image.pixels.width + x)
    return image.pixels.bytes[start] > 170 && image.pixels.bytes[start + 1] < 70
  }

  @Test func `A strobe image shows the ball at each chosen frame`() throws {
    let scratch = try Scratch()
    let asset = try Self.ball(scratch)
    let strobe = try StillComposer(asset).strobe(.every(MediaTime(10, over: 240)))
    #expect(strobe.frames.map(\.index) == [0, 10, 20, 30])
    for x in 0..<180 {
      let nearest = [10, 50, 90, 130].map { abs(x - $0) }.min() ?? 0
      if nearest <= 3 { #expect(Self.isBall(strobe, x), "\(x)") }
      if nearest >= 6 { #expect(!Self.isBall(strobe, x), "\(x)") }
    }
    let few = try StillComposer(asset).strobe(.count(2))
    #expect(few.frames.map(\.index) == [0, 39])
    #expect(Self.isBall(few, 10) && Self.isBall(few, 166) && !Self.isBall(few, 90))
    #expect {
      try StillComposer(asset).strobe(.every(.zero))
    } throws: {
      ($0 as? MediaError)?.code == .notPositive
    }
  }

  @Test func `A trail image fades the older positions of the ball`() throws {
    let scratch = try Scratch()
    let trail = try StillComposer(try Self.ball(scratch)).trail()
    func red(_ x: Int) -> Int { Int(trail.pixels.bytes[3 * (20 * trail.pixels.width + x)]) }
    #expect(red(166) > 210)
    // Three of the oldest ball positions overlap at this column.
    #expect((130...175).contains(red(14)), "\(red(14))")
    #expect(zip([20, 60, 100, 140], [60, 100, 140, 160]).allSatisfy { red($0) < red($1) })
    let (above, below) = (trail.pixels.bytes[3 * 90], trail.pixels.bytes[3 * (39 * 180 + 90)])
    #expect(above == below && above < 90)
  }

  @Test func `A photo finish shows when the ball crosses the line`() throws {
    let scratch = try Scratch()
    let asset = try Self.ball(scratch)
    var settings = StillComposer.FinishSettings(column: 90, slitWidth: 3)
    let finish = try StillComposer(asset).photoFinish(settings)
    #expect(finish.pixels.width == 120 && finish.pixels.height == 40 + 28)
    // The center of the ball crosses the line in frame 20. The ball covers the line in frames 19 to
    // 21.
    for slot in 0..<40 {
      #expect(Self.isBall(finish, 3 * slot + 1) == (19...21).contains(slot), "\(slot)")
    }
    // The ruler has 0.72 pixels per millisecond: 240 frames per second, 3 pixels each.
    let lines = (0..<120).filter { x in
      let start = 3 * (48 * 120 + x)
      return finish.pixels.bytes[start] > 200
    }
    #expect(lines == [0, 72], "\(lines)")
    settings.isReversed = true
    settings.origin = MediaTime(20, over: 240)
    let reversed = try StillComposer(asset).photoFinish(settings)
    #expect(Self.isBall(reversed, 119 - 3 * 20 - 1) && !Self.isBall(reversed, 119 - 3 * 10))
    settings.column = 180
    #expect {
      try StillComposer(asset).photoFinish(settings)
    } throws: {
      ($0 as? MediaError)?.code == .outsideSource
    }
  }

  @Test func `Frames of another size are scaled to the first`() async throws {
    let scratch = try Scratch()
    let ball = try Self.ball(scratch)
    var stream = Data()
    for (name, frames, size) in [("a", "0:20", "180:40"), ("b", "20:40", "360:80")] {
      let ends = frames.split(separator: ":")
      try await FFmpeg.make(
        scratch.file("\(name).mjpeg"),
        ["-i", ball.path, "-vf", "trim=start_frame=\(ends[0]):end_frame=\(ends[1]),scale=\(size)"]
          + ["-q:v", "1", "-pix_fmt", "yuvj444p"])
      stream += try Data(contentsOf: URL(fileURLWithPath: scratch.file("\(name).mjpeg")))
    }
    try stream.write(to: URL(fileURLWithPath: scratch.file("both.mjpeg")))
    try await FFmpeg.make(
      scratch.file("both.mov"), ["-r", "240", "-i", scratch.file("both.mjpeg"), "-c", "copy"])
    let composer = try StillComposer(Asset(path: scratch.file("both.mov")))
    let strobe = try composer.strobe(.count(2))
    #expect(strobe.frames.map(\.index) == [0, 39] && strobe.pixels.width == 180)
    #expect(Self.isBall(strobe, 10) && Self.isBall(strobe, 166) && !Self.isBall(strobe, 90))
    #expect(try composer.trail().frames.count == 40)
    let finish = try composer.photoFinish(
      StillComposer.FinishSettings(column: 90, slitWidth: 1))
    #expect(finish.frames.map(\.index) == Array(0..<40))
    #expect((19...21).allSatisfy { Self.isBall(finish, $0) } && !Self.isBall(finish, 30))
  }

  @Test(arguments: [false, true])
  func `The labels of a ruler are whole`(isReversed: Bool) throws {
    let scratch = try Scratch()
    // Zero is near the edge at which time begins, and 100 ms near the other edge.
    let asset = try PaintedMovie(width: 16, height: 16, rate: 1_000, count: 106)
      .write(to: scratch.file("a.mov")) { _, _, _ in 0 }
    var settings = StillComposer.FinishSettings(slitWidth: 1, isReversed: isReversed)
    settings.origin = MediaTime(3, over: 1_000)
    let finish = try StillComposer(asset).photoFinish(settings)
    let width = finish.pixels.width
    #expect(width == 106)
    var expected = Canvas(width: width, height: 14)
    for (text, x) in [("0 ms", 3), ("100 ms", 103)] {
      let center = isReversed ? width - 1 - x : x
      let length = Canvas.width(of: text, scale: 1)
      let left = max(1, min(center - length / 2, width - length - 1))
      expected.draw(text, x: left, y: 0, scale: 1)
    }
    #expect(Array(finish.pixels.bytes.suffix(3 * width * 14)) == expected.bytes)
  }

  @Test func `Refuses a still image of a range after the last frame`() throws {
    let scratch = try Scratch()
    let path = scratch.file("a.mov")
    var recipe = MovieRecipe.constant(240, count: 24)
    recipe.audio = MovieRecipe.Audio()
    recipe.audio?.sampleCount = 48_000
    recipe.audio?.codec = "pcm_s16le"
    try recipe.write(to: path)
    let asset = try Asset(path: path)
    let range = try TimeRange(
      start: MediaTime(1, over: 2), end: MediaTime(3, over: 5))
    #expect {
      try StillComposer(asset, range: range)
    } throws: {
      ($0 as? MediaError)?.code == .outsideSource
    }
  }

  @Test func `A photo finish fills a lost frame with the frame before it`() throws {
    let scratch = try Scratch()
    var movie = PaintedMovie(width: 180, height: 40, rate: 240, count: 39)
    // Frame 10 is missing.
    movie.times = (0..<39).map { Int64($0 < 10 ? $0 : $0 + 1) * 1_000 }
    movie.end = 40_000
    let asset = try movie.write(to: scratch.file("gap.mov")) { frame, _, _ in
      UInt8(frame < 10 ? 20 + frame * 4 : 24 + frame * 4)
    }
    let finish = try StillComposer(asset)
      .photoFinish(StillComposer.FinishSettings(column: 0, slitWidth: 1))
    #expect(finish.pixels.width == 40)
    #expect(finish.frames.map(\.index) == Array(0..<10) + [9] + Array(10..<39))
  }

  @Test func `A contact sheet applies the rotation of the movie`() throws {
    let scratch = try Scratch()
    var recipe = MovieRecipe.constant(60, count: 4)
    recipe.displayMatrix = [0, 65_536, 0, -65_536, 0, 0, 0, 0, 1 << 30]
    let path = scratch.file("r.mov")
    try recipe.write(to: path)
    let sheet = try StillComposer(Asset(path: path))
      .contactSheet(StillComposer.SheetSettings(count: 1, frameWidth: 32))
    #expect(sheet.frames[0].box.width == 32 && sheet.frames[0].box.height == 128)
  }

  @Test func `Compared clips of two capture rates play at the same speed`() throws {
    let scratch = try Scratch()
    func movie(_ name: String, rate: Int64, capture: String?, count: Int64) throws -> Asset {
      var recipe = MovieRecipe.constant(rate, count: count)
      recipe.metadata["com.android.capture.fps"] = capture
      try recipe.write(to: scratch.file(name))
      return try Asset(path: scratch.file(name))
    }
    let first = try movie("a.mov", rate: 120, capture: nil, count: 120)
    // The clip was captured at 240 fps and plays at 30 fps.
    let second = try movie("b.mov", rate: 30, capture: "240", count: 240)
    let comparison = ClipComparison(
      [
        ClipComparison.Clip(first, origin: MediaTime(60, over: 120)),
        ClipComparison.Clip(second, origin: MediaTime(48, over: 30)),
      ], frameRate: 30, speed: Speed(1, over: 4))
    let plan = try comparison.plan()
    // The comparison lasts from 0.2 s before to 0.5 s after the marked instant, with 120 frames per
    // second of real time.
    #expect(plan.start == Rational(-1, over: 5) && plan.frameCount == 84)
    #expect(plan.size.width == 256 && plan.size.height == 32)
    let path = scratch.file("both.mp4")
    try comparison.write(to: path)
    let both = try Asset(path: path)
    #expect(both.videoTrack?.frameCount == 84 && both.videoTrack?.nominalFrameRate == 30)
    var frames = try UprightFrames(both, isColor: true)
    for slot in 0..<84 {
      let image = try frames.image(at: slot)
      var right = image
      right.width = 128
      right.bytes = (0..<32).flatMap { row in
        image.bytes[3 * (row * 256 + 128)..<3 * (row + 1) * 256]
      }
      #expect(Self.number(image) == 36 + slot)
      #expect(Self.number(right) == 2 * slot)
    }
    #expect {
      try comparison.write(to: path)
    } throws: {
      ($0 as? MediaError)?.code == .outputExists
    }
    // Each clip has 128x32 pixels.
    let narrow = ClipComparison(
      [ClipComparison.Clip](repeating: ClipComparison.Clip(first), count: 64), frameRate: 30)
    #expect(try narrow.plan().size.width == 4_096)
    let wide = ClipComparison(
      [ClipComparison.Clip](repeating: ClipComparison.Clip(first), count: 65), frameRate: 30)
    #expect {
      try wide.plan()
    } throws: {
      ($0 as? MediaError)?.code == .imageTooLarge
    }
    let late = ClipComparison.Clip(first, origin: MediaTime(seconds: 9))
    #expect {
      try ClipComparison([late], frameRate: 30).plan()
    } throws: {
      ($0 as? MediaError)?.code == .outsideSource
    }
  }
}
