// SPDX-License-Identifier: Apache-2.0

import Glibc
package import OvercrankMediaCore
package import OvercrankRaster
import Synchronization

/// A font in which text is drawn as masks.
///
/// The characters of Latin-1 stand in columns of equal width, whatever the font. They are drawn once
/// for each size, so that text that changes with each frame costs no more than copying. Other text is
/// drawn as a whole by librsvg, which shapes it, and takes a fallback font for a script that the font
/// lacks. So the name of a file is drawn once, even if a frame number follows it.
///
/// Text that librsvg cannot draw is drawn in ``DotFont``; ``check(scale:)`` says why. Text beyond
/// 32000 pixels is cut off, and so are more than 1024 characters that are drawn as a whole. May be used
/// from any thread.
package final class InstalledFont: Sendable {
  private struct Key: Hashable {
    let text: String
    let scale: Int
  }

  private struct Cache {
    /// The masks of the characters of Latin-1 that were drawn, by scale and character.
    private var characters: [Int: [Unicode.Scalar: TextMask]] = [:]
    private var texts: [Key: TextMask] = [:]

    /// Draws a text as a whole, unless it was drawn before.
    mutating func mask(of text: String, _ attributes: String, _ scale: Int) -> TextMask {
      let key = Key(text: text, scale: scale)
      if let known = texts[key] { return known }
      if texts.count >= InstalledFont.maximumTexts { texts = [:] }
      let made =
        (try? InstalledFont.drawn(text, attributes, scale))
        ?? TextMask(dots: InstalledFont.shown(text.unicodeScalars, scale), scale: scale)
      texts[key] = made
      return made
    }

    /// Returns the masks of at least the characters of a text in Latin-1.
    mutating func masks(
      of text: Substring.UnicodeScalarView, _ attributes: String, _ scale: Int
    ) -> [Unicode.Scalar: TextMask] {
      var masks = characters[scale] ?? [:]
      let missing = Set(text.lazy.filter { masks[$0] == nil })
      guard !missing.isEmpty else { return masks }
      // While all characters fit in one image, drawing them at once costs least. Large ones are drawn
      // when they are needed, because all of them would take hundreds of megabytes.
      let fitsAll = InstalledFont.columns(TextMask.advance * scale) >= InstalledFont.latin.count
      let characters = fitsAll ? InstalledFont.latin : Array(missing)
      let drawn =
        (try? InstalledFont.drawnCharacters(
          characters, attributes, columnWidth: TextMask.advance * scale, scale))
        ?? characters.map { TextMask(dots: CollectionOfOne($0), scale: scale) }
      masks.merge(zip(characters, drawn)) { first, _ in first }
      self.characters[scale] = masks
      return masks
    }
  }

  /// The attributes of the font in SVG; nil for ``DotFont``.
  private let attributes: String?
  private let cache = Mutex(Cache())

  private static let found: (font: InstalledFont, failure: CallFailure?) = {
    let font = InstalledFont(family: "monospace")
    do throws(CallFailure) {
      try font.check(scale: 2)
      return (font, nil)
    } catch {
      return (.dots, error)
    }
  }()

  /// The fixed-width font of the system; ``DotFont`` if it cannot be drawn.
  package static var standard: InstalledFont { found.font }

  /// The reason why ``standard`` is ``DotFont``, as ``check(scale:)`` throws it; otherwise nil.
  package static var standardFailure: CallFailure? { found.failure }

  /// The library's own ``DotFont``, whose text programs can read back.
  package static let dots = InstalledFont(attributes: nil)

  /// Creates a font of a family.
  ///
  /// If the family is not installed, fontconfig selects the most similar one.
  ///
  /// - Parameters:
  ///   - family: The name of the family, such as `DejaVu Sans Mono`. A comma separates families,
  ///     each of which is used for the characters that those before it lack.
  ///   - weight: The weight from 100 (thin) to 900 (black).
  ///   - isItalic: Whether the font is slanted.
  ///   - stretch: The width, as CSS names it, such as `condensed`.
  package convenience init(
    family: String, weight: Int = 400, isItalic: Bool = false, stretch: String = "normal"
  ) {
    self.init(
      attributes: #"font-family="\#(SVGImage.quoted(family))" font-weight="\#(weight)""#
        + (isItalic ? #" font-style="italic""# : "")
        + (stretch == "normal" ? "" : #" font-stretch="\#(SVGImage.escaped(stretch))""#))
  }

  private init(attributes: String?) { self.attributes = attributes }

  /// Whether the font is ``DotFont``, which has the printable characters of ASCII only.
  package var isDots: Bool { attributes == nil }

  /// Draws digits, to find out whether text can be drawn.
  ///
  /// - Throws: `CallFailure`: of the kind `.notFound` if FFmpeg was built without librsvg,
  ///   `.notSupported` if no font is installed, `.outOfRange` for a scale above 2000, `.outOfMemory`,
  ///   and others if librsvg fails.
  package func check(scale: Int) throws(CallFailure) {
    guard let attributes else { return }
    let digits: [Unicode.Scalar] = ["1", "2", "4", "7"]
    let outlines = try Self.drawnCharacters(
      digits, attributes, columnWidth: TextMask.advance * scale, scale
    ).compactMap(Outline.init)
    // Without a font, Pango draws the same box for each digit, and leaves out some at random.
    guard Set(outlines).count == digits.count else {
      throw CallFailure("draw", "text", ENOTSUP, .notSupported, reason: "no font is installed")
    }
  }

  /// Draws a line of text.
  package func mask(of text: String, scale: Int) -> TextMask {
    guard let attributes else {
      return TextMask(dots: Self.shown(text.unicodeScalars, scale), scale: scale)
    }
    let (shaped, tail) = Self.split(text.unicodeScalars)
    return cache.withLock { cache in
      let advance = TextMask.advance * scale
      let first = shaped.isEmpty ? nil : cache.mask(of: String(shaped), attributes, scale)
      // The mask of a text ends with its last visible character.
      let spaces = tail.isEmpty ? 0 : shaped.reversed().prefix { $0 == " " }.count
      let left = (first?.width ?? 0) + spaces * advance
      let shown = tail.prefix(max(0, Self.maximumWidth - left) / advance)
      let characters = cache.masks(of: shown, attributes, scale)
      var mask = TextMask(width: left + shown.count * advance, scale: scale)
      if let first { mask.draw(first, x: 0) }
      for (index, scalar) in shown.enumerated() {
        if let character = characters[scalar] { mask.draw(character, x: left + index * advance) }
      }
      return mask
    }
  }

  /// Splits a text into a first part that is drawn as a whole, and a last part in Latin-1.
  ///
  /// The last part begins with a letter, so that it cannot be part of a line from right to left.
  private static func split(
    _ text: String.UnicodeScalarView
  ) -> (shaped: Substring.UnicodeScalarView, tail: Substring.UnicodeScalarView) {
    guard let last = text.lastIndex(where: { !isLatin($0.value) }) else {
      return (text[..<text.startIndex], text[...])
    }
    let start = text[last...].firstIndex { $0.isASCII && $0.properties.isAlphabetic }
    return (text[..<(start ?? text.endIndex)], text[(start ?? text.endIndex)...])
  }

  /// The width of a text in pixels, without the space after its last character.
  package func width(of text: String, scale: Int) -> Int {
    if isDots || Self.isLatin(text) {
      return max(0, text.unicodeScalars.count * TextMask.advance - 1) * scale
    }
    return mask(of: text, scale: scale).width
  }

  /// The text, shortened with `..` at the end if it does not fit into a width in pixels.
  ///
  /// Measures the text at most 12 times, however long it is.
  package func fitting(_ text: String, width: Int, scale: Int) -> String {
    guard width > 0 else { return "" }
    let scalars = text.unicodeScalars.prefix(Self.maximumLength)
    let isWhole = scalars.endIndex == text.unicodeScalars.endIndex
    guard !isWhole || self.width(of: text, scale: scale) > width else { return text }
    let characters = Array(String(scalars))
    var (fitting, tooLong) = (0, characters.count + (isWhole ? 0 : 1))
    func shortened(_ count: Int) -> String { String(characters.prefix(count)) + ".." }
    while fitting + 1 < tooLong {
      let count = (fitting + tooLong) / 2
      if self.width(of: shortened(count), scale: scale) <= width {
        fitting = count
      } else {
        tooLong = count
      }
    }
    return fitting > 0 ? shortened(fitting) : ""
  }

  private static func isLatin(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { isLatin($0.value) }
  }

  /// Whether a code is a printable character of Latin-1.
  private static func isLatin(_ code: UInt32) -> Bool {
    (0x20..<0x7F).contains(code) || (0xA0...0xFF).contains(code)
  }

  /// A hash of the pixels of all characters of Latin-1, which differs between fonts.
  package var fingerprint: UInt64 {
    // The hash function is FNV-1a.
    mask(of: String(String.UnicodeScalarView(Self.latin)), scale: 4).coverage
      .reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  // MARK: Characters without a font

  /// Codes that no font has, because they are no characters.
  ///
  /// A code of six digits has a wider box than one of four.
  private static let boxes = [0xFDD0, 0x10FFFE].compactMap { Unicode.Scalar($0 as UInt32) }

  /// The edges of a mask's covered part.
  private struct Outline: Hashable {
    private let area: PixelRect
    private let pixels: [UInt8]

    /// Finds the edges; nil for a blank mask.
    init?(_ mask: TextMask) {
      guard let area = mask.coveredArea else { return nil }
      self.area = area
      func pixel(_ x: Int, _ y: Int) -> UInt8 { mask.coverage[y * mask.width + x] }
      pixels =
        area.columns.flatMap { [pixel($0, area.y), pixel($0, area.bottom - 1)] }
        + area.rows.flatMap { [pixel(area.x, $0), pixel(area.right - 1, $0)] }
    }
  }

  /// The characters of a text that no installed font has, each once and in order.
  ///
  /// They are drawn as boxes that contain their code, by which they are recognized, or in ``DotFont``
  /// as question marks. Only the first 1024 characters of the text are looked at.
  package func missingCharacters(of text: String) -> String {
    var known: Set<Unicode.Scalar> = []
    let characters = text.unicodeScalars.prefix(Self.maximumLength).filter {
      !(0x20..<0x7F).contains($0.value) && known.insert($0).inserted
    }
    guard let attributes else {
      return String(String.UnicodeScalarView(characters.filter { !DotFont.contains($0) }))
    }
    guard !characters.isEmpty,
      let masks = try? Self.drawnCharacters(
        Self.boxes + characters, attributes, columnWidth: 2 * Self.fontSize(4), 4)
    else { return "" }
    let outlines = masks.map(Outline.init)
    let missing = zip(characters, outlines.dropFirst(Self.boxes.count)).filter { _, outline in
      outline != nil && outlines.prefix(Self.boxes.count).contains(outline)
    }
    return String(String.UnicodeScalarView(missing.map(\.0)))
  }

  // MARK: Drawing

  /// The greatest number of stored texts; a window shows fewer at once.
  private static let maximumTexts = 64
  /// The greatest number of characters that are drawn as a whole; file names have at most 255 bytes.
  private static let maximumLength = 1_024
  /// The greatest width of an image and of a text; cairo draws images of less than 32768 pixels.
  private static let maximumWidth = 32_000
  private static let maximumHeight = 32_767
  private static let latin = (0x20...0xFF).filter(isLatin).compactMap(Unicode.Scalar.init)

  /// The number of columns with space between them that fit in an image.
  private static func columns(_ width: Int) -> Int { max(1, maximumWidth / (2 * width)) }

  /// As many characters of the dot font as fit in the width of an image.
  private static func shown(
    _ text: String.UnicodeScalarView, _ scale: Int
  ) -> Substring.UnicodeScalarView {
    text.prefix(maximumWidth / (TextMask.advance * scale))
  }

  /// Draws characters, each centered in a column of its own, in as many images as they need.
  ///
  /// The parts beyond the columns are cut off.
  private static func drawnCharacters(
    _ characters: [Unicode.Scalar], _ attributes: String, columnWidth: Int, _ scale: Int
  ) throws(CallFailure) -> [TextMask] {
    var masks: [TextMask] = []
    while masks.count < characters.count {
      let part = characters.dropFirst(masks.count).prefix(columns(columnWidth))
      // Each character has empty space on both sides, so that a wide one does not reach the next.
      let texts = part.enumerated().map { index, character in
        #"<text x="\#((2 * index + 1) * columnWidth)" text-anchor="middle">"#
          + SVGImage.escaped(String(character)) + "</text>"
      }
      let image = try image(of: texts, attributes, width: part.count * 2 * columnWidth, scale)
      masks += (0..<part.count).map { index in
        let left = 2 * index * columnWidth + columnWidth / 2
        return mask(image, columns: left..<left + columnWidth, scale)
      }
    }
    return masks
  }

  /// Draws a text as a whole; the mask ends with the last column that has a covered pixel.
  private static func drawn(
    _ text: String, _ attributes: String, _ scale: Int
  ) throws(CallFailure) -> TextMask {
    let margin = 2 * scale
    let scalars = text.unicodeScalars.prefix(maximumLength)
    // No character is wider than twice its height.
    let width = min(maximumWidth, margin + (scalars.count + 1) * 2 * fontSize(scale))
    let line = #"<text x="\#(margin)">"# + SVGImage.escaped(String(scalars)) + "</text>"
    let image = try image(of: [line], attributes, width: width, scale)
    let whole = mask(image, columns: margin..<width, scale)
    return mask(image, columns: margin..<margin + (whole.coveredArea?.right ?? 0), scale)
  }

  private static func fontSize(_ scale: Int) -> Int { (19 * scale + 1) / 2 }

  /// Draws elements of white text with the baseline of a mask.
  private static func image(
    of texts: [String], _ attributes: String, width: Int, _ scale: Int
  ) throws(CallFailure) -> MediaFrame {
    let height = TextMask.rows * scale
    guard width <= maximumWidth, height <= maximumHeight else {
      throw CallFailure(
        "draw", "text of \(width)x\(height) pixels", EOVERFLOW, .outOfRange,
        reason: "the limit is \(maximumWidth)x\(maximumHeight)")
    }
    let baseline = (TextMask.overhang + TextMask.capHeight) * scale
    let frame = try SVGImage.draw(
      """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)">\
      <g transform="translate(0 \(baseline))" fill="#ffffff" xml:space="preserve" \
      font-size="\(fontSize(scale))" \(attributes)>\(texts.joined())</g></svg>
      """)
    guard frame.pixelFormat == .bgra, frame.width >= width, frame.height >= height else {
      throw CallFailure(
        "draw", "text", EPROTO, .other,
        reason: "an image of \(frame.width)x\(frame.height) \(frame.pixelFormat.name) was drawn")
    }
    return frame
  }

  /// The alpha component of some columns.
  private static func mask(_ frame: MediaFrame, columns: Range<Int>, _ scale: Int) -> TextMask {
    guard let alpha = frame.planeData(0) else {
      return TextMask(width: columns.count, scale: scale)
    }
    return TextMask(
      columns: columns, of: alpha + 3, bytesPerRow: frame.bytesPerRow(0), bytesPerPixel: 4,
      scale: scale)
  }
}

extension InstalledFont: Hashable {
  package static func == (first: InstalledFont, second: InstalledFont) -> Bool {
    first.attributes == second.attributes
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(attributes) }
}
