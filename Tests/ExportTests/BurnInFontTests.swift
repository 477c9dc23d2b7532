// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import TestSupport
import Testing

@testable import OvercrankExport

/// Text in frames with an installed font.
struct BurnInFontTests {
  @Test(
    arguments: zip(
      [320, 960, 320, 320, 320], ["yuv420p", "yuv420p", "yuv422p10le", "yuv444p10le", "bgr0"]))
  func `Burned-in text in a system font shows time and frame number`(
    width: Int, name: String
  ) throws {
    let directory = try Scratch()
    let format = try #require(LibAVPixelFormat(named: name))
    let shift = format.depth - 8
    let frames = try (0..<12).map { index in
      try FrameSamples.frame(width: width, height: 160, format) { component, _, _ in
        (component.number == 0 ? 60 + 5 * index : 128) << shift
      }
    }
    let asset = try Asset.lossless(frames, rate: 240, at: directory.file("source.mov"))
    let font = try BurnInFont(named: "monospace")
    var settings = ExportSettings(
      path: directory.file("out.mov"), mode: .constant(240, RenderSettings(encoding: .ffv1)))
    settings.render { $0.burnIn = BurnIn(items: [.time, .frame], font: font) }
    let report = try ExportSession(try Composition(asset), of: asset).export(settings)
    var reader = try FrameReader(try Asset(path: report.path))
    for index in 0..<12 {
      let frame = try reader.mediaFrame(at: index)
      let time = try BurnInText.text(Rational(Int128(index), over: 240))
      let text = Text(frame, lineCount: 2, scale: max(2, width / 320), font)
      #expect(text.lines == ["\(time) s", "frame \(index)"], "frame \(index)")
      // The codec is lossless, so every pixel is as drawn, apart from rounding.
      #expect(text.largestDifference <= 1.01 * Double(1 << shift), "frame \(index)")
      #expect(FrameSamples.code(frame, x: width - 4, y: 8) == (60 + 5 * index) << shift)
    }
  }

  @Test func `Burned-in text has the system font unless another is chosen`() throws {
    for width in [160, 271, 320] {
      func frame(_ font: BurnInFont?) throws -> MediaFrame {
        let frame = try FrameSamples.frame(width: width, height: 64, .yuv420p) { _, _, _ in 128 }
        let drawing = try BurnInDrawing(
          BurnIn(items: [], font: font), width: width, height: 64, pixelFormat: .yuv420p,
          isFullRange: false, TransferFunction(.convertedFromRGB))
        drawing.draw(["frame 0017"], width: width, bottom: 64, on: frame)
        return frame
      }
      let scale = width < 272 ? 1 : 2
      #expect(Text(try frame(nil), lineCount: 1, scale: scale, .standard).lines == ["frame 0017"])
      #expect(Text(try frame(.dots), lineCount: 1, scale: scale, .dots).lines == ["frame 0017"])
      #expect(
        BurntText.lines(in: try frame(.dots), lineCount: 1, scale: scale) == ["frame 0017"])
    }
  }

  @Test func `Fonts of one name are equal and others have another digest`() throws {
    let font = try BurnInFont(named: "monospace")
    #expect(try BurnInFont(named: "monospace") == font && BurnInFont.standard == font)
    #expect(try BurnInFont(named: "dots") == .dots)
    let names = ["dots", "monospace", "monospace:bold", "monospace:bold:italic", "serif"]
    let digests = try names.map { try BurnInFont(named: $0).debugDescription }
    #expect(Set(digests).count == names.count)
  }

  @Test(arguments: [
    "", "/none/font.ttf", "fonts/mono", ":bold", "monospace:pink", "monospace:style=Pink",
    "monospace:weight=pink", "monospace:size=12", "monospace-12", "monospace-12.5:bold",
    "monospace:style=Extra", "monospace:", "monospace:lang=de",
  ])
  func `A file path or an unknown style is rejected as a font name`(name: String) throws {
    let error = #expect(throws: MediaError.self) { try BurnInFont(named: name) }
    #expect(error?.code == .burnInRefused)
  }

  @Test(arguments: [
    ("DejaVu Sans Mono:style=Bold", "DejaVu Sans Mono:bold"),
    ("DejaVu Sans Mono:style=Bold Oblique", "DejaVu Sans Mono:bold:oblique"),
    ("DejaVu Sans Mono:weight=200", "DejaVu Sans Mono:bold"),
    ("DejaVu Sans Mono:weight=Bold:slant=110", "DejaVu Sans Mono:bold:italic"),
    ("DejaVu Sans Mono:style=Book", "DejaVu Sans Mono"),
    ("DejaVu Sans Mono:regular:roman:normal", "DejaVu Sans Mono"),
    ("DejaVu Sans Mono:demibold", "DejaVu Sans Mono:style=Semi Bold"),
    ("DejaVu Sans Mono:style=Condensed Bold", "DejaVu Sans Mono:bold:width=75"),
    (#"A\-1\:2:bold"#, #"A\-1\:2:weight=200"#), ("Roboto-Mono", #"Roboto\-Mono"#),
  ])
  func `Two spellings of a font name mean the same font`(first: String, second: String) throws {
    #expect(try BurnInFont(named: first) == BurnInFont(named: second))
    #expect(try BurnInFont(named: first) != BurnInFont(named: "monospace"))
  }

  @Test(arguments: [4_800, 7_680, 16_384])
  func `Text in a wide frame is drawn`(width: Int) throws {
    let frame = try FrameSamples.frame(width: width, height: 640, .yuv420p) { _, _, _ in 128 }
    let drawing = try BurnInDrawing(
      BurnIn(items: [.frame]), width: width, height: 640, pixelFormat: .yuv420p,
      isFullRange: false, TransferFunction(.convertedFromRGB))
    drawing.draw(["frame 0017"], width: width, bottom: 640, on: frame)
    let columns = Set(
      stride(from: 0, to: width, by: 4).filter { x in
        stride(from: 0, to: 640, by: 4).contains { FrameSamples.code(frame, x: x, y: $0) > 200 }
      }.map { $0 / (6 * width / 320) })
    // Each of the characters has white pixels in its column, except for the space.
    #expect(columns.isSuperset(of: [0, 1, 2, 3, 4, 6, 7, 8, 9]) && columns.count < 12)
  }

  @Test(arguments: [480, 3_840])
  func `Letters below the baseline do not touch an edge`(width: Int) throws {
    let frame = try FrameSamples.frame(width: width, height: 320, .yuv420p) { _, _, _ in 128 }
    let drawing = try BurnInDrawing(
      BurnIn(items: [.frame]), width: width, height: 320, pixelFormat: .yuv420p,
      isFullRange: false, TransferFunction(.convertedFromRGB))
    drawing.draw(["(jpgqy|)", "(jpgqy|)"], width: width, bottom: 316, on: frame)
    let margin = max(1, width / 640)
    let top = 316 - BurnInDrawing.height(ofLines: 2, inWidth: width)
    for y in Array(top..<top + margin) + Array(316 - margin..<316) {
      for x in 0..<width where FrameSamples.code(frame, x: x, y: y) != 16 {
        #expect(FrameSamples.code(frame, x: x, y: y) == 128, "\(x), \(y)")
      }
    }
  }

  @Test func `Only an export with text depends on the font`() throws {
    let directory = try Scratch()
    let asset = try Asset.made(.constant(240, count: 4), in: directory)
    let image = try MediaFrame.video(width: 8, height: 8, pixelFormat: .rgb24).pngBytes()
    let logos = try ["a.png", "b.png"].map { try directory.write(image, as: $0) }
    let session = ExportSession(try Composition(asset), of: asset)
    func digest(_ burnIn: BurnIn) throws -> ExportDigest {
      var settings = ExportSettings(
        path: directory.file("out.mov"), mode: .constant(240, RenderSettings(encoding: .ffv1)))
      settings.render { $0.burnIn = burnIn }
      return try session.digest(settings, version: "1")
    }
    let logo = try digest(BurnIn(items: [], logoPath: logos[0]))
    #expect(try digest(BurnIn(items: [], logoPath: logos[0], font: .dots)) == logo)
    // The content of the logo counts, not its path.
    #expect(try digest(BurnIn(items: [], logoPath: logos[1])) == logo)
    let text = try digest(BurnIn(items: [.time]))
    #expect(try digest(BurnIn(items: [.time], font: .standard)) == text)
    #expect(try digest(BurnIn(items: [.time], font: .dots)) != text)
  }
}

/// The text at the lower left of a frame.
///
/// Each character is read as the one whose shape differs least.
private struct Text {
  private(set) var lines: [String] = []
  /// The largest difference between a pixel and the shape of the character that was read.
  private(set) var largestDifference = 0.0

  init(_ frame: MediaFrame, lineCount: Int, scale: Int, _ font: BurnInFont) {
    let top = (frame.height - (lineCount * 9 + 2) * scale) & ~3
    // The rows from the top of the capital letters to the tall letters of the next line.
    let (width, height) = (6 * scale, 8 * scale)
    let (black, white) = frame.pixelFormat.name == "bgr0" ? (0.0, 255.0) : (16, 235)
    let unit = Double(1 << (frame.pixelFormat.depth - 8))
    let printable = (0x20 as UInt8)..<0x7F
    let shapes = printable.map { character in
      let mask = font.font.mask(of: String(UnicodeScalar(character)), scale: scale)
      return mask.coverage.dropFirst(TextMask.overhang * scale * width).prefix(width * height).map {
        (black + (white - black) * Double($0) / 255) * unit
      }
    }
    for line in 0..<lineCount {
      var characters: [UInt8] = []
      // The longest line has 10 characters.
      for position in 0..<10 {
        let margin = font == .dots ? 2 : 1
        let (left, upper) = ((2 + position * 6) * scale, top + (margin + line * 9) * scale)
        let codes = (0..<width * height).map {
          Double(FrameSamples.code(frame, x: left + $0 % width, y: upper + $0 / width))
        }
        let differences = shapes.map { zip(codes, $0).map { abs($0 - $1) } }
        let sums = differences.map { $0.reduce(0, +) }
        let best = sums.indices.min { sums[$0] < sums[$1] } ?? 0
        characters.append(printable.lowerBound + UInt8(best))
        // The background box ends after the longest line.
        guard best > 0 else { continue }
        largestDifference = max(largestDifference, differences[best].max() ?? 0)
      }
      var text = String(decoding: characters, as: UTF8.self)
      while text.hasSuffix(" ") { text.removeLast() }
      lines.append(text)
    }
  }
}
