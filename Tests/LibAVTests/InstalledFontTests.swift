// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import Testing

/// Text in installed fonts, drawn by librsvg.
///
/// The tests need DejaVu Sans Mono, of the package fonts-dejavu-core. It has Latin, Greek, Cyrillic and
/// Arabic letters and many signs, but no Chinese, Japanese or Korean characters.
struct InstalledFontTests {
  private let font = InstalledFont(family: "DejaVu Sans Mono")

  init() throws {
    // fontconfig takes another font for a family that is not installed.
    try #require(
      font.fingerprint != InstalledFont(family: "No such family").fingerprint,
      "the font DejaVu Sans Mono is not installed")
  }

  @Test func `Each Latin character of a font has its own shape`() {
    let characters = (0x21...0xFF).filter { !(0x7F...0xA0).contains($0) && $0 != 0xAD }
      .compactMap(Unicode.Scalar.init)
    for scale in [1, 2, 12] {
      let masks = characters.map { font.mask(of: String($0), scale: scale) }
      #expect(masks.allSatisfy { $0.width == 6 * scale && $0.coveredArea != nil }, "\(scale)")
      #expect(Set(masks).count == masks.count, "\(scale)")
    }
    #expect(font.mask(of: " ", scale: 2).coveredArea == nil && !font.isDots)
    #expect(!InstalledFont.standard.isDots && InstalledFont.standardFailure == nil)
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
    let both = first.width + font.mask(of: alef, scale: 4).width
    #expect(joined.coveredArea != nil && joined.width < both)
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

  @Test(arguments: ["Привет", "مرحبا", "Ω≈½", "Łódź", "→☺"])
  func `Text of other scripts is drawn and measured`(text: String) {
    #expect(font.missingCharacters(of: text).isEmpty)
    let mask = font.mask(of: text, scale: 3)
    #expect(mask.coveredArea != nil && mask.width == font.width(of: text, scale: 3))
    #expect(Set(text.map { font.mask(of: String($0), scale: 3) }).count == text.count)
    #expect(mask != InstalledFont.dots.mask(of: text, scale: 3))
  }

  @Test func `Characters that no font has are found`() {
    // U+0378 and U+10FFFD have no character.
    let text = "a\u{10FFFD}é\u{378}\u{3000}Ω\u{378}\u{25A1}\u{25AF}"
    #expect(font.missingCharacters(of: text) == "\u{10FFFD}\u{378}")
    #expect(InstalledFont.dots.missingCharacters(of: "é·aé") == "é")
    #expect(font.missingCharacters(of: "").isEmpty)
    // A character that no font has is drawn as a box of its own.
    #expect(font.mask(of: "\u{378}", scale: 3) != font.mask(of: "\u{379}", scale: 3))
  }

  @Test(arguments: [14, 15, 24, 109])
  func `Text of a large scale is drawn like small text`(scale: Int) {
    // The share of covered pixels hardly depends on the scale.
    func share(_ text: String, _ scale: Int) -> Double {
      let mask = font.mask(of: text, scale: scale)
      let sum = mask.coverage.reduce(0) { $0 + Int($1) }
      return Double(sum) / Double(255 * mask.width * mask.height)
    }
    for text in ["frame ~0017.50", "Ω≈½"] {
      #expect(abs(share(text, scale) / share(text, 8) - 1) < 0.05, "\(text)")
    }
    #expect(font.mask(of: "g", scale: scale).width == 6 * scale)
  }

  @Test func `Text is cut off at the greatest width of an image`() {
    for text in [String(repeating: "e", count: 1_000), String(repeating: "Ω", count: 1_000)] {
      #expect((31_000...32_000).contains(font.mask(of: text, scale: 20).width))
      #expect((31_000...32_000).contains(InstalledFont.dots.mask(of: text, scale: 20).width))
    }
  }

  @Test(arguments: ["Прыжок.", "قفزة ", "قفزة 1.5 · "])
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
    let long = "Прыжки в длину"
    let width = font.width(of: long, scale: 2)
    let short = font.fitting(long, width: width / 2, scale: 2)
    #expect(short.hasSuffix("..") && short.hasPrefix("Пры"))
    #expect(font.width(of: short, scale: 2) <= width / 2)
    #expect(font.width(of: long.prefix(short.count - 1) + "..", scale: 2) > width / 2)
  }

  @Test(arguments: ["e", "Ω", "e\u{301}", "走"])
  func `A text of a million characters is shortened`(character: String) {
    let text = String(repeating: character, count: 1_000_000)
    let short = font.fitting(text, width: 300, scale: 2)
    #expect(short.hasPrefix(character) && short.hasSuffix("..") && short.count < 30)
    #expect(font.width(of: short, scale: 2) <= 300)
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
    #expect(dots.width(of: "12", scale: 2) == 22 && dots.mask(of: " ", scale: 1).coveredArea == nil)
    // Every printable character has dots, and no two characters look the same.
    let printed = (0x21..<0x7F).compactMap { Unicode.Scalar($0) } + ["·"]
    let shapes = printed.map { dots.mask(of: String($0), scale: 1) }
    #expect(shapes.allSatisfy { $0.coveredArea != nil } && Set(shapes).count == printed.count)
    #expect(dots.mask(of: "é", scale: 1) == dots.mask(of: "?", scale: 1))
  }

  @Test func `A bold font covers more and names cannot break the document`() throws {
    func amount(_ font: InstalledFont) -> Int {
      font.mask(of: "frame 0017", scale: 4).coverage.reduce(0) { $0 + Int($1) }
    }
    let bold = InstalledFont(family: "monospace", weight: 700)
    #expect(Double(amount(bold)) > 1.15 * Double(amount(font)))
    // librsvg ignores a family that is no name of CSS, and takes a font with serifs.
    for name in ["Exo 2", "Terminus (TTF)", #"it's "a\b" <font> & "#, "4:3", "a\nb"] {
      let family = InstalledFont(family: "DejaVu Sans Mono, \(name)")
      try family.check(scale: 2)
      #expect(family.fingerprint == font.fingerprint, "\(name)")
    }
    #expect(font.mask(of: "<&>\u{7}Ω", scale: 2).width > 4 * 8)
  }

  @Test func `Drawing says why it fails`() throws {
    #expect {
      try SVGImage.draw("<svg/>", decoder: "none")
    } throws: {
      ($0 as? CallFailure)?.kind == .notFound
    }
    #expect {
      try SVGImage.draw("<svg")
    } throws: {
      ($0 as? CallFailure).map { [.invalidData, .other].contains($0.kind) } ?? false
    }
    let failure = try #require(throws: CallFailure.self) { try font.check(scale: 3_000) }
    #expect(failure.kind == .outOfRange && failure.description.contains("32000x32767"))
    try InstalledFont.dots.check(scale: 3_000)
  }
}
