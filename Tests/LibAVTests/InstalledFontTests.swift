// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import Testing

/// Text in installed fonts, drawn by librsvg.
///
/// fontconfig depends on a font with Latin and Arabic characters, DejaVu. Characters without a font
/// are boxes that contain their code.
struct InstalledFontTests {
  private let font = InstalledFont.standard

  @Test func `Each Latin character of a font has its own shape`() {
    let characters = (0x21...0xFF).filter { !(0x7F...0xA0).contains($0) && $0 != 0xAD }
      .compactMap(Unicode.Scalar.init)
    for scale in [1, 2, 12] {
      let masks = characters.map { font.mask(of: String($0), scale: scale) }
      #expect(masks.allSatisfy { $0.width == 6 * scale && !$0.isBlank }, "\(scale)")
      #expect(Set(masks).count == masks.count, "\(scale)")
    }
    #expect(font.mask(of: " ", scale: 2).isBlank && font.isUsable && !font.isDots)
  }

  @Test func `Latin text stands in columns on a common baseline`() throws {
    let text = font.mask(of: "Eg1", scale: 4)
    #expect(text.width == 72 && text.height == 56)
    #expect(font.width(of: "Eg1", scale: 4) == 68 && font.width(of: "", scale: 4) == 0)
    for (index, character) in "Eg1".enumerated() {
      let single = font.mask(of: String(character), scale: 4)
      for row in 0..<56 {
        let part = text.coverage[row * 72 + index * 24..<row * 72 + index * 24 + 24]
        #expect(part.elementsEqual(single.coverage[row * 24..<row * 24 + 24]))
      }
    }
    func rows(_ character: String) throws -> ClosedRange<Int> {
      let rows = font.mask(of: character, scale: 10).rectangles(x: 0, y: 0).map(\.y)
      return try #require(rows.min())...#require(rows.max())
    }
    for character in ["A", "E", "z", "1", "."] {
      #expect(try abs(rows(character).upperBound - 69) <= 2, "\(character)")
    }
    #expect(try abs(rows("H").lowerBound) <= 2)
    #expect(try rows("g").upperBound > 80)
    #expect(try rows("É").lowerBound < -8)
  }

  @Test func `Arabic letters are joined and drawn from right to left`() throws {
    // Lam and alef join to one shape that is narrower than both.
    let (lam, alef) = ("\u{644}", "\u{627}")
    let (joined, first) = (font.mask(of: lam + alef, scale: 4), font.mask(of: lam, scale: 4))
    #expect(!joined.isBlank && joined.width < first.width + font.mask(of: alef, scale: 4).width)
    // The last letter of a line is at its left: an alef is a high stroke, and a beh is flat.
    func heightAtLeft(_ text: String) throws -> Int {
      let areas = font.mask(of: text, scale: 4).rectangles(x: 0, y: 0)
      let left = try #require(areas.map(\.x).min())
      return Set(areas.filter { $0.x < left + 8 }.map(\.y)).count
    }
    let (beh, highest) = ("\u{628}", try heightAtLeft(alef))
    #expect(highest > 20)
    #expect(try heightAtLeft(beh + " " + alef) == highest)
    #expect(try heightAtLeft(alef + " " + beh) < highest)
  }

  @Test(arguments: ["走り幅跳び", "مرحبا", "Ω≈½", "👍"])
  func `Text of other scripts is drawn and measured`(text: String) {
    let mask = font.mask(of: text, scale: 3)
    #expect(!mask.isBlank && mask.width == font.width(of: text, scale: 3))
    #expect(Set(text.map { font.mask(of: String($0), scale: 3) }).count == text.count)
    // A box for a missing character contains its code, so it differs from the box of another one.
    #expect(mask != font.mask(of: String(repeating: "\u{10FFFD}", count: text.count), scale: 3))
    #expect(mask != InstalledFont.dots.mask(of: text, scale: 3))
  }

  @Test(arguments: ["走り.", "قفزة ", "قفزة 1.5 · "])
  func `A Latin end of a text is drawn like a text of its own`(start: String) throws {
    let end = "mov · frame 12"
    let (whole, last) = (font.mask(of: start + end, scale: 2), font.mask(of: end, scale: 2))
    let left = whole.width - last.width
    let first = font.mask(of: start, scale: 2)
    #expect(left == first.width + (start.hasSuffix(" ") ? 12 : 0))
    for (part, x) in [(first, 0), (last, left)] {
      for row in 0..<part.height {
        #expect(
          part.coverage[row * part.width..<(row + 1) * part.width]
            .elementsEqual(
              whole.coverage[row * whole.width + x..<row * whole.width + x + part.width]))
      }
    }
  }

  @Test func `Text that is too wide is shortened`() {
    for font in [font, .dots] {
      #expect(font.fitting("frame", width: 29, scale: 1) == "frame")
      #expect(font.fitting("frame", width: 28, scale: 1) == "fr..")
      #expect(font.fitting("frame", width: 5, scale: 1).isEmpty)
    }
    #expect(font.fitting("", width: -1, scale: 1).isEmpty)
    #expect(font.width(of: String(repeating: "跳", count: 5_000), scale: 4) < 32_000)
    let long = "走り幅跳びの撮影"
    let width = font.width(of: long, scale: 2)
    let short = font.fitting(long, width: width / 2, scale: 2)
    #expect(short.hasSuffix("..") && short.hasPrefix("走"))
    #expect(font.width(of: short, scale: 2) <= width / 2)
  }

  @Test func `The dot font draws known characters and question marks`() {
    // The digit 1 is drawn as a stroke with a foot and a flag.
    let dots = InstalledFont.dots
    let one = Set(dots.mask(of: "1", scale: 2).rectangles(x: 10, y: 20))
    let rows = [(14, 2), (12, 4), (14, 2), (14, 2), (14, 2), (14, 2), (12, 6)]
    let expected = rows.enumerated().flatMap { row, part in
      [0, 1].map { PixelRect(x: part.0, y: 20 + 2 * row + $0, width: part.1, height: 1) }
    }
    #expect(one == Set(expected))
    #expect(dots.width(of: "12", scale: 2) == 22 && dots.mask(of: " ", scale: 1).isBlank)
    // Every printable character has dots, and no two characters look the same.
    let printed = (0x21..<0x7F).compactMap { Unicode.Scalar($0) } + ["·"]
    let shapes = printed.map { dots.mask(of: String($0), scale: 1) }
    #expect(shapes.allSatisfy { !$0.isBlank } && Set(shapes).count == printed.count)
    #expect(dots.mask(of: "é", scale: 1) == dots.mask(of: "?", scale: 1))
  }

  @Test func `A bold font covers more and names cannot break the document`() throws {
    func amount(_ font: InstalledFont) -> Int {
      font.mask(of: "frame 0017", scale: 4).coverage.reduce(0) { $0 + Int($1) }
    }
    let bold = InstalledFont(family: "monospace", weight: 700)
    #expect(Double(amount(bold)) > 1.15 * Double(amount(font)))
    let strange = InstalledFont(family: #"no" such <font> & "#)
    #expect(strange.isUsable)
    #expect(font.mask(of: "<&>\u{7}走", scale: 2).width > 4 * 8)
    #expect(throws: CallFailure.self) { try SVGImage.draw("<svg") }
  }
}
