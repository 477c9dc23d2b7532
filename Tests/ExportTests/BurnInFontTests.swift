// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankFonts
import OvercrankLibAV
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankExport

/// Text in frames with an installed font, drawn by libavfilter.
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

  @Test func `A narrow frame has burned-in text in the built-in dot font`() throws {
    let font = try BurnInFont(named: "monospace")
    for width in [160, 271, 272] {
      let frame = try FrameSamples.frame(width: width, height: 64, .yuv420p) { _, _, _ in 128 }
      let drawing = try BurnInDrawing(
        BurnIn(items: [], font: font), width: width, height: 64, pixelFormat: .yuv420p,
        isFullRange: false, TransferFunction(.convertedFromRGB))
      drawing.draw(["frame 0017"], width: width, bottom: 64, on: frame)
      let dots = BurntText.lines(in: frame, lineCount: 1, scale: 1)
      let lines = width < 272 ? dots : Text(frame, lineCount: 1, scale: 2, font).lines
      #expect(lines == ["frame 0017"], "\(width)")
    }
  }

  @Test func `Each character of a burn-in font is drawn differently`() throws {
    let font = try BurnInFont(named: "monospace")
    #expect(try BurnInFont(named: "monospace") == font)
    let shapes = BurnInFont.characters.map { font.scaled($0, width: 24, height: 36) }
    #expect(Set(shapes).count == shapes.count)
    // A space has no dots, and characters that ASCII does not print have none either.
    #expect(shapes.filter { $0.allSatisfy { $0 == 0 } }.count == 1)
    #expect(font.scaled(0xC3, width: 24, height: 36).allSatisfy { $0 == 0 })
  }

  @Test func `Font characters share a baseline and are centered`() throws {
    let font = try BurnInFont(named: "monospace")
    func rows(_ character: Character) throws -> ClosedRange<Int> {
      let shape = font.scaled(try #require(character.asciiValue), width: 80, height: 120)
      let inked = (0..<120).filter { row in shape[row * 80..<row * 80 + 80].contains { $0 > 0.5 } }
      return try #require(inked.first)...#require(inked.last)
    }
    let baseline = try rows("H").upperBound
    for character in "AEz1." {
      #expect(try abs(rows(character).upperBound - baseline) <= 2, "\(character)")
    }
    #expect(try rows("g").upperBound > baseline + 10)
    #expect(try rows("'").upperBound < baseline - 40)
    #expect(try rows("|").lowerBound < rows("z").lowerBound)
    let bar = font.scaled(0x7C, width: 80, height: 120)
    let columns = (0..<80).filter { bar[60 * 80 + $0] > 0.5 }
    #expect(columns.contains(39) && columns.contains(40) && columns.count < 20)
  }

  @Test(arguments: ["", "/none/font.ttf", "fonts/mono"])
  func `A file path is rejected as the name of a font`(name: String) throws {
    let error = #expect(throws: MediaError.self) { try BurnInFont(named: name) }
    #expect(error?.code == .burnInRefused)
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
    let (width, height) = (6 * scale, 9 * scale)
    let (black, white) = frame.pixelFormat.name == "bgr0" ? (0.0, 255.0) : (16, 235)
    let unit = Double(1 << (frame.pixelFormat.depth - 8))
    let shapes = BurnInFont.characters.map { character in
      font.scaled(character, width: width, height: height).map {
        (black + (white - black) * $0) * unit
      }
    }
    for line in 0..<lineCount {
      var characters: [UInt8] = []
      // The longest line has 10 characters.
      for position in 0..<10 {
        let (left, upper) = ((2 + position * 6) * scale, top + (1 + line * 9) * scale)
        let codes = (0..<width * height).map {
          Double(FrameSamples.code(frame, x: left + $0 % width, y: upper + $0 / width))
        }
        let differences = shapes.map { zip(codes, $0).map { abs($0 - $1) } }
        let sums = differences.map { $0.reduce(0, +) }
        let best = sums.indices.min { sums[$0] < sums[$1] } ?? 0
        characters.append(BurnInFont.characters.lowerBound + UInt8(best))
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
