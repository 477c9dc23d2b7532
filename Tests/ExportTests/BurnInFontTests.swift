// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankTitles
import TestSupport
import Testing

@testable import OvercrankExport

/// Text in frames with an installed font, drawn by libavfilter.
struct BurnInFontTests {
  @Test(arguments: [320, 960])
  func `The text of an installed font names the source frame`(width: Int) throws {
    let folder = try Scratch()
    let frames = try (0..<12).map { index in
      try FrameSamples.frame(width: width, height: 160, .yuv420p) { component, _, _ in
        component.number == 0 ? 60 + 5 * index : 128
      }
    }
    let asset = try Asset.lossless(frames, rate: 240, at: folder.file("source.mov"))
    let font = try BurnInFont(named: "monospace")
    var settings = ExportSettings(
      path: folder.file("out.mov"), mode: .constant(240, RenderSettings(encoding: .ffv1)))
    settings.render { $0.burnIn = BurnIn(items: [.time, .frame], font: font) }
    let report = try ExportSession(try Composition(asset), of: asset).export(settings)
    var reader = try FrameReader(try Asset(path: report.path))
    for index in 0..<12 {
      let frame = try reader.mediaFrame(at: index)
      let lines = Self.lines(in: frame, lineCount: 2, font, scale: max(2, width / 320))
      let time = try BurnInText.text(Rational(Int128(index), over: 240))
      #expect(lines == ["\(time) s", "frame \(index)"], "frame \(index)")
      #expect(FrameSamples.code(frame, x: width - 4, y: 8) == 60 + 5 * index)
    }
  }

  @Test func `Narrow frames have the font of dots`() throws {
    let font = try BurnInFont(named: "monospace")
    for width in [160, 271, 272] {
      let drawing = try BurnInDrawing(
        BurnIn(items: [], font: font), width: width, height: 64, pixelFormat: .yuv420p,
        isFullRange: false, TransferFunction(.convertedFromRGB))
      let frame = try FrameSamples.frame(width: width, height: 64, .yuv420p) { _, _, _ in 128 }
      drawing.draw(["frame 17"], width: width, bottom: 64, on: frame)
      let scale = width < 272 ? 1 : 2
      #expect(
        (BurntText.lines(in: frame, lineCount: 1, scale: scale) == ["frame 17"]) == (scale == 1),
        "\(width)")
    }
  }

  @Test func `Every character has a shape of its own, and the same one each time`() throws {
    let font = try BurnInFont(named: "monospace")
    #expect(try BurnInFont(named: "monospace") == font)
    let shapes = BurnInFont.characters.map { font.scaled($0, width: 24, height: 36) }
    #expect(Set(shapes).count == shapes.count)
    // A space is empty, and so is what ASCII does not print.
    #expect(shapes.filter { $0.allSatisfy { $0 == 0 } }.count == 1)
    #expect(font.scaled(0xC3, width: 24, height: 36).allSatisfy { $0 == 0 })
    // A sixth of the cells is white, as in text of any font.
    let mean = shapes.joined().reduce(0, +) / Double(shapes.count * 24 * 36)
    #expect((0.05...0.3).contains(mean), "\(mean)")
  }

  @Test func `A file that is no font is refused`() throws {
    let missing = #expect(throws: MediaError.self) { try BurnInFont(named: "/none/font.ttf") }
    #expect(missing?.code == .fileNotFound)
    #expect(missing?.message.contains("/none/font.ttf") == true)
  }

  /// Reads lines: each character is the one whose shape differs least.
  private static func lines(
    in frame: MediaFrame, lineCount: Int, _ font: BurnInFont, scale: Int
  ) -> [String] {
    let top = (frame.height - (lineCount * 9 + 2) * scale) & ~3
    let (width, height) = (6 * scale, 9 * scale)
    let shapes = BurnInFont.characters.map {
      ($0, font.scaled($0, width: width, height: height).map { 16 + 219 * $0 })
    }
    return (0..<lineCount).map { line in
      // As many characters as the longest line has.
      let characters = (0..<10).map { position -> UInt8 in
        let (left, upper) = ((2 + position * 6) * scale, top + (1 + line * 9) * scale)
        let codes = (0..<width * height).map {
          Double(FrameSamples.code(frame, x: left + $0 % width, y: upper + $0 / width))
        }
        let differences = shapes.map { shape in
          zip(codes, shape.1).reduce(0) { $0 + abs($1.0 - $1.1) }
        }
        let best = differences.indices.min { differences[$0] < differences[$1] } ?? 0
        return shapes[best].0
      }
      var text = String(decoding: characters, as: UTF8.self)
      while text.hasSuffix(" ") { text.removeLast() }
      return text
    }
  }
}
