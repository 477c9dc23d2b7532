// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

@testable import OvercrankExport

/// Exports that draw text and a logo into their frames.
struct BurnInTests {
  private static let (width, height) = (320, 96)
  private let directory: Scratch

  init() throws { directory = try Scratch() }

  @Test(arguments: ["yuv420p", "yuv420p10le", "yuv422p", "yuv422p10le", "yuv444p10le", "bgr0"])
  func `Burned-in text shows source time and frame number and speed`(name: String) throws {
    let format = try #require(LibAVPixelFormat(named: name))
    let asset = try movie(format)
    let slow = try asset.retimed([(try range(0, 50), speed(1, 8))])
    let burnIn = BurnIn(
      items: [.time, .frame, .speed, .mark], mark: .milliseconds(25), font: .dots)
    let report = try ExportSession(slow, of: asset).export(settings(burnIn, .ffv1))
    let frames = try frames(of: report.path)
    // The first 12 frames play at 1/8 speed and are all shown at 30 fps. Every eighth of the other
    // 12 is shown.
    #expect(frames.count == 14)
    for (slot, frame) in frames.enumerated() {
      let index = slot < 12 ? slot : 12 + (slot - 12) * 8
      #expect(frame.pixelFormat == format)
      let expected = [
        "\(seconds(index)) s", "frame \(index)", "speed \(slot < 12 ? "1/8" : "1")",
        "mark \(index < 6 ? "-" : "+")\(seconds(abs(index - 6))) s",
      ]
      #expect(BurntText.lines(in: frame, lineCount: 4) == expected, "slot \(slot)")
      #expect(luma(frame, x: 300, y: 40) == luma(of: index, format), "slot \(slot)")
    }
  }

  @Test(arguments: ["yuv420p", "yuv444p10le"])
  func `Burned-in text is readable after H.264 encoding`(name: String) throws {
    let asset = try movie(try #require(LibAVPixelFormat(named: name)))
    var reversed = try Composition(asset)
    try reversed.reverse(TimeRange(duration: asset.duration))
    let burnIn = BurnIn(items: [.time, .frame, .speed], font: .dots)
    let report = try ExportSession(reversed, of: asset).export(
      settings(burnIn, .h264(EncoderSettings(preset: "ultrafast")), rate: 240))
    let frames = try frames(of: report.path)
    #expect(frames.count == 24)
    for (slot, frame) in frames.enumerated() {
      let expected = ["\(seconds(23 - slot)) s", "frame \(23 - slot)", "speed -1"]
      #expect(BurntText.lines(in: frame, lineCount: 3) == expected, "slot \(slot)")
    }
  }

  @Test(arguments: ["yuv420p", "yuv422p10le", "bgr0"])
  func `A logo is blended into the upper right corner`(name: String) throws {
    let format = try #require(LibAVPixelFormat(named: name))
    let asset = try movie(format)
    let logo = directory.file("logo.png")
    try writeLogo(to: logo)
    let report = try ExportSession(try Composition(asset), of: asset).export(
      settings(BurnIn(items: [], logoPath: logo), .ffv1, rate: 240))
    let frame = try #require(try frames(of: report.path).first)
    let scale = 1 << (frame.pixelFormat.depth - 8)
    // The logo covers columns 296 to 311 and rows 8 to 23. Its right half is half transparent.
    let (background, red) = (luma(of: 0, format), name == "bgr0" ? 255 : 81 * scale)
    let opaque = luma(frame, x: 300, y: 16)
    #expect(abs(opaque - red) <= scale, "\(opaque)")
    let mixed = luma(frame, x: 308, y: 16)
    #expect(abs(mixed - (red + background) / 2) <= 2 * scale, "\(mixed)")
    #expect(luma(frame, x: 290, y: 16) == background)
    #expect(luma(frame, x: 314, y: 16) == background)
    #expect(luma(frame, x: 300, y: 4) == background)
    #expect(luma(frame, x: 300, y: 26) == background)
  }

  @Test func `Burned-in text stands upright in a rotated movie`() throws {
    var recipe = MovieRecipe.constant(240, count: 4)
    recipe.displayMatrix = [0, 65_536, 0, -65_536, 0, 0, 0, 0, 1 << 30]
    let asset = try Asset.made(recipe, in: directory)
    let report = try ExportSession(try Composition(asset), of: asset).export(
      settings(BurnIn(items: [.frame]), .ffv1))
    let track = try #require(try Asset(path: report.path).videoTrack)
    #expect(track.rotation == 0)
    #expect(track.width == asset.videoTrack?.height && track.height == asset.videoTrack?.width)
  }

  @Test(arguments: [false, true])
  func `Text on a synthesized frame shows its exact source time`(isReversed: Bool) throws {
    let asset = try movie(.yuv420p)
    var composition = try asset.retimed([(TimeRange(duration: asset.duration), speed(1, 4))])
    if isReversed { try composition.reverse(TimeRange(duration: composition.duration)) }
    var flow = settings(
      BurnIn(items: [.time, .frame, .mark], mark: .zero, font: .dots), .ffv1, rate: 240)
    flow.render { $0.sampling = .flow }
    let report = try ExportSession(composition, of: asset).export(flow)
    let frames = try frames(of: report.path)
    #expect(frames.count == 96)
    var synthesizedCount: Int64 = 0
    for (slot, frame) in frames.enumerated() {
      let lines = BurntText.lines(in: frame, lineCount: 3)
      let number = lines[1].dropFirst(6)
      let isSynthesized = number.hasPrefix("~")
      synthesizedCount += isSynthesized ? 1 : 0
      let found = try #require(Double(number.drop { $0 == "~" }))
      #expect(isSynthesized == (found.rounded() != found), "slot \(slot): \(lines)")
      // Frame numbers increase by a quarter, up to the last captured frame.
      if !isReversed { #expect(found == Double(min(slot, 92)) / 4, "slot \(slot): \(lines)") }
      // Each frame has a different brightness, which gives the painted frame number.
      let painted = Double(luma(frame, x: 300, y: 40) - 60) / 5
      #expect(abs(painted - found) <= 0.3, "slot \(slot): \(lines), painted \(painted)")
      let sign = isSynthesized ? "~" : ""
      let time = try BurnInText.text(Rational(Int128(found * 4), over: 960))
      #expect(lines[0] == "\(sign)\(time) s" && lines[2] == "mark \(sign)+\(time) s")
    }
    #expect(synthesizedCount == report.framesSynthesized && synthesizedCount > 60)
  }

  @Test func `A missing logo file is refused`() throws {
    let asset = try movie(.yuv420p)
    let session = ExportSession(try Composition(asset), of: asset)
    let missing = #expect(throws: MediaError.self) {
      try session.export(settings(BurnIn(items: [], logoPath: directory.file("none.png")), .ffv1))
    }
    #expect(missing?.code.rawValue == "file_not_found")
  }

  // MARK: Movies

  private func settings(
    _ burnIn: BurnIn, _ encoding: VideoEncoding, rate: FrameRate = 30
  ) -> ExportSettings {
    var settings = ExportSettings(
      path: directory.file("out.mov"), mode: .constant(rate, RenderSettings(encoding: encoding)))
    settings.render { $0.burnIn = burnIn }
    settings.overwrites = true
    return settings
  }

  /// The time of a frame in seconds, with six decimals.
  private func seconds(_ index: Int) -> String {
    let microseconds = (index * 1_000_000 * 2 + 240) / 480
    let digits = String(microseconds)
    return "0." + String(repeating: "0", count: 6 - digits.count) + digits
  }

  /// The luma, gray or red value of a frame of the movie.
  private func luma(of index: Int, _ format: LibAVPixelFormat) -> Int {
    (60 + 5 * index) << (format.depth - 8)
  }

  /// A movie of 24 frames at 240 fps.
  ///
  /// Each frame has one color.
  private func movie(_ format: LibAVPixelFormat) throws -> Asset {
    let frames = try (0..<24).map { index in
      let codes = [luma(of: index, format), 128 << (format.depth - 8)]
      return try FrameSamples.frame(width: Self.width, height: Self.height, format) {
        component, _, _ in codes[min(component.number, 1)]
      }
    }
    return try .lossless(frames, rate: 240, at: directory.file("source.mov"))
  }

  /// Writes a red square whose right half has an alpha of one half.
  private func writeLogo(to path: String) throws {
    let rgba = try #require(LibAVPixelFormat(named: "rgba"))
    let frame = try MediaFrame.video(width: 16, height: 16, pixelFormat: rgba)
    let plane = try #require(frame.planeData(0))
    for y in 0..<16 {
      for x in 0..<16 {
        let offset = y * frame.bytesPerRow(0) + 4 * x
        (plane[offset], plane[offset + 1], plane[offset + 2]) = (255, 0, 0)
        plane[offset + 3] = x < 8 ? 255 : 128
      }
    }
    var settings = Encoder.VideoSettings(
      codec: "png", width: 16, height: 16, pixelFormat: rgba, timescale: 1)
    settings.threadCount = 1
    var encoder = try Encoder(video: settings)
    try encoder.send(frame)
    try encoder.send(nil)
    let packet = try #require(try encoder.nextPacket())
    _ = try directory.write(packet.withBytes { [UInt8]($0) }, as: "logo.png")
    #expect(path == directory.file("logo.png"))
  }

  // MARK: Reading

  private func frames(of path: String) throws -> [MediaFrame] {
    let asset = try Asset(path: path)
    var reader = try FrameReader(asset)
    return try (0..<(asset.videoTrack?.frameCount ?? 0)).map { try reader.mediaFrame(at: $0) }
  }

  private func luma(_ frame: MediaFrame, x: Int, y: Int) -> Int {
    FrameSamples.code(frame, x: x, y: y)
  }
}
