// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import OvercrankRetiming
import TestSupport
import Testing

@testable import OvercrankExport

/// Exports of animated GIF and WebP.
struct AnimatedImageTests {
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  @Test(arguments: [30, 24, 50, 12.5, 7] as [Double])
  func `GIF frames start at the nearest hundredth of a second`(fps: Double) throws {
    let rate = try FrameRate(Rational(Int128(fps * 2), over: 2))
    let report = try export(to: "a.gif", .gif, rate: rate)
    let image = try Asset(path: report.path)
    let track = try #require(image.videoTrack)
    #expect(track.codec.rawValue == "gif" && track.width == 64 && track.height == 48)
    #expect(track.frameCount == Int(report.framesEncoded))
    let starts = try (0..<track.frameCount).map { try track.frames.time(ofFrame: Int64($0)) }
    var greatest = Rational.zero
    for (slot, start) in starts.enumerated() {
      let error = start.seconds - Rational(Int64(slot)) / rate.framesPerSecond
      greatest = max(greatest, error < .zero ? .zero - error : error)
      // A GIF tick is 1/100 s, and half ticks are rounded up.
      let tick = (Rational(Int64(slot) * 100) / rate.framesPerSecond + Rational(1, over: 2))
      #expect(start == MediaTime(Int64(try tick.rounded(.towardNegativeInfinity)), over: 100))
    }
    let stated = try (greatest * 1_000_000_000).rounded(.towardPositiveInfinity)
    #expect(report.maxTimeError == .nanoseconds(Int64(stated)))
    let total = Rational(Int64(track.frameCount)) / rate.framesPerSecond
    let error = image.duration.seconds - total
    #expect(error.doubleValue.magnitude <= 0.005, "\(image.duration)")
    #expect(try loopCount(report.path) == 0)
  }

  @Test func `GIF frames keep the colors of the source`() throws {
    let report = try export(to: "a.gif", .gif, rate: 30)
    let image = try Asset(path: report.path)
    var reader = try FrameReader(image)
    var converter = FrameConverter(to: .bgra, isFullRange: true)
    for slot in 0..<Int(report.framesEncoded) {
      let frame = try converter.convert(try reader.mediaFrame(at: slot))
      let pixels = try #require(frame.planeData(0))
      // The upper half of a frame has one color. The lower half has bars.
      let pixel = pixels + 10 * frame.bytesPerRow(0) + 4 * 20
      #expect(abs(Int(pixel[1]) - green(of: slot)) <= 2, "slot \(slot): \(pixel[1])")
      for bar in 0..<4 {
        let pixel = pixels + 40 * frame.bytesPerRow(0) + 4 * (bar * 16 + 8)
        let found = [Int(pixel[2]), Int(pixel[1]), Int(pixel[0])]
        let error = zip(found, Self.bars[bar]).map { abs($0 - $1) }.max() ?? 0
        #expect(error <= 3, "slot \(slot), bar \(bar): \(found)")
      }
    }
  }

  @Test func `WebP frames start at the nearest millisecond`() throws {
    let report = try export(to: "a.webp", .webp(), rate: 30)
    #expect(report.framesEncoded == 24)
    let file = try bytes(of: report.path)
    let durations = WebPDurations.milliseconds(in: file)
    #expect(durations == (0..<24).map { (($0 + 1) * 1_000 + 15) / 30 - ($0 * 1_000 + 15) / 30 })
    let anim = try #require(file.firstRange(of: Array("ANIM".utf8)))
    #expect(file[anim.upperBound + 8..<anim.upperBound + 10].allSatisfy { $0 == 0 })
  }

  @Test func `WebP frames keep the colors of the source`() throws {
    let report = try export(to: "a.webp", .webp(quality: 90), rate: 30)
    let image = try #require(try AnimatedWebP(try bytes(of: report.path)))
    let frames = try image.images()
    #expect(image.width == 64 && image.height == 48 && frames.count == 24)
    for (slot, pixels) in frames.enumerated() {
      let pixel = pixels[10 * 64 + 20]
      #expect(abs(Int(pixel.y) - green(of: slot)) <= 4 && pixel.w == 255, "slot \(slot): \(pixel)")
      for bar in 0..<4 {
        let pixel = pixels[40 * 64 + bar * 16 + 8]
        let error = zip([pixel.x, pixel.y, pixel.z], Self.bars[bar]).map { abs(Int($0) - $1) }
        #expect(error.max() ?? 255 <= 12, "slot \(slot), bar \(bar): \(pixel)")
      }
    }
  }

  @Test func `A clip of one frame exports as a GIF or WebP of one frame`() throws {
    let asset = try movie()
    var one = Composition()
    try one.append(asset, range: try range(0, 33))
    for (name, encoding) in [("a.gif", VideoEncoding.gif), ("a.webp", .webp())] {
      let report = try ExportSession(one, of: asset).export(
        ExportSettings(
          path: directory.file(name), mode: .constant(30, RenderSettings(encoding: encoding))))
      #expect(report.framesEncoded == 1)
      #expect(try Asset(path: report.path).videoTrack?.frameCount == 1)
    }
  }

  @Test func `A missing WebP encoder is named in the error`() throws {
    let settings = ExportSettings(
      path: "a.webp", mode: .constant(30, RenderSettings(encoding: .webp())))
    let error = #expect(throws: MediaError.self) {
      try AnimatedImageCheck.check(settings) { _ in false }
    }
    #expect(error?.code == .missingEncoder)
    #expect(error?.message.contains("libwebp_anim") == true)
  }

  @Test func `Rejects a frame rate or export mode that GIF or WebP lacks`() throws {
    func code(_ path: String, _ mode: ExportMode) -> MediaError.Code? {
      #expect(throws: MediaError.self) {
        try AnimatedImageCheck.check(ExportSettings(path: path, mode: mode))
      }?.code
    }
    #expect(code("a.gif", .passthrough()) == .unsupportedContainer)
    #expect(code("a.gif", .constant(30, RenderSettings())) == .unsupportedContainer)
    #expect(code("a.mp4", .constant(30, RenderSettings(encoding: .gif))) == .unsupportedContainer)
    let fast = ExportMode.constant(51, RenderSettings(encoding: .gif))
    #expect(code("a.gif", fast) == .outputFrameRateRefused)
    let faster = ExportMode.constant(91, RenderSettings(encoding: .webp()))
    #expect(code("a.webp", faster) == .outputFrameRateRefused)
  }

  @Test func `Dithering keeps the mean of a color that the palette lacks`() throws {
    var histogram = ColorHistogram()
    histogram.add(try frame { x, _ in x % 2 == 0 ? [0, 0, 0] : [255, 255, 255] })
    let palette = ColorPalette(histogram)
    #expect(Set(palette.colors.map(\.red)) == [0, 255])
    // Dithering mixes gray levels of the palette to make a color between them.
    var steps = ColorHistogram()
    steps.add(try frame { x, _ in [x / 4 * 16, x / 4 * 16, x / 4 * 16] })
    var renderer = PaletteRenderer(ColorPalette(steps))
    let mixed = try renderer.convert(try frame { _, _ in [72, 72, 72] })
    let codes = try #require(mixed.planeData(0))
    let table = try #require(mixed.planeData(1))
    var sum = 0
    for y in 0..<48 {
      for x in 0..<64 { sum += Int(table[4 * Int(codes[y * mixed.bytesPerRow(0) + x])]) }
    }
    #expect(abs(Double(sum) / (64 * 48) - 72) < 2)
  }

  // MARK: Movies

  private static let bars = [[255, 0, 0], [0, 128, 0], [32, 64, 224], [250, 250, 250]]

  private func green(of index: Int) -> Int { 40 + 8 * index }

  private func export(
    to name: String, _ encoding: VideoEncoding, rate: FrameRate
  ) throws -> ExportReport {
    let asset = try movie()
    let settings = ExportSettings(
      path: directory.file(name), mode: .constant(rate, RenderSettings(encoding: encoding)))
    return try ExportSession(try Composition(asset), of: asset).export(settings)
  }

  /// A movie of 24 frames at 30 fps.
  ///
  /// The upper half of each frame has one color, the lower half has bars.
  private func movie() throws -> Asset {
    let rgb = try #require(LibAVPixelFormat(named: "bgr0"))
    var frames: [MediaFrame] = []
    for index in 0..<24 {
      frames.append(
        try frame(rgb) { x, y in
          y < 24 ? [20, green(of: index), 90] : Self.bars[x / 16]
        })
    }
    return try .lossless(frames, rate: 30, at: directory.file("source.mov"))
  }

  /// A frame with a given color for each pixel.
  private func frame(
    _ format: LibAVPixelFormat = .bgra, _ color: (_ x: Int, _ y: Int) -> [Int]
  ) throws -> MediaFrame {
    let frame = try MediaFrame.video(width: 64, height: 48, pixelFormat: format)
    let pixels = try #require(frame.planeData(0))
    for y in 0..<48 {
      for x in 0..<64 {
        let (color, pixel) = (color(x, y), pixels + y * frame.bytesPerRow(0) + 4 * x)
        for component in 0..<3 { pixel[component] = UInt8(color[2 - component]) }
        pixel[3] = 255
      }
    }
    return frame
  }

  /// The repetition count stored in a GIF; 0 for an endless loop.
  private func loopCount(_ path: String) throws -> Int {
    let file = try bytes(of: path)
    let block = try #require(file.firstRange(of: Array("NETSCAPE2.0".utf8)))
    return Int(file[block.upperBound + 2]) | Int(file[block.upperBound + 3]) << 8
  }
}
