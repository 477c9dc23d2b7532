// SPDX-License-Identifier: Apache-2.0

package import OvercrankRaster
import Synchronization

/// A font in which text is drawn as masks.
///
/// The characters of Latin-1 stand in columns of equal width, whatever the font. They are drawn once
/// for each size, so that text that changes with each frame costs no more than copying. Other text is
/// drawn as a whole by librsvg, which shapes it, and takes a fallback font for a script that the font
/// lacks. So the name of a file is drawn once, even if a frame number follows it.
///
/// May be used from any thread.
package final class InstalledFont: Sendable {
  private struct Key: Hashable {
    let text: String
    let scale: Int
  }

  private struct Cache {
    /// The masks of the characters of Latin-1, by scale and character.
    var characters: [Int: [Unicode.Scalar: TextMask]] = [:]
    private var texts: [Key: TextMask] = [:]

    /// Draws a text as a whole, unless it was drawn before.
    mutating func mask(of text: String, _ attributes: String, _ scale: Int) -> TextMask {
      let key = Key(text: text, scale: scale)
      if let known = texts[key] { return known }
      if texts.count >= InstalledFont.maximumTexts { texts = [:] }
      let made = InstalledFont.drawn(text, attributes, scale)
      texts[key] = made
      return made
    }
  }

  /// The attributes of the font in SVG; nil for ``DotFont``.
  private let attributes: String?
  private let cache = Mutex(Cache())

  /// The fixed-width font of the system; ``DotFont`` on a machine without fonts.
  package static let standard: InstalledFont = {
    let font = InstalledFont(family: "monospace")
    return font.isUsable ? font : .dots
  }()

  /// The library's own ``DotFont``, whose text programs can read back.
  package static let dots = InstalledFont(attributes: nil)

  /// Creates a font of a family.
  ///
  /// If the family is not installed, fontconfig selects the most similar one.
  ///
  /// - Parameters:
  ///   - family: The name of the family, such as `DejaVu Sans Mono`.
  ///   - weight: The weight from 100 (thin) to 900 (black).
  ///   - isItalic: Whether the font is slanted.
  package convenience init(family: String, weight: Int = 400, isItalic: Bool = false) {
    self.init(
      attributes: #"font-family="\#(SVGImage.escaped(family))" font-weight="\#(weight)""#
        + (isItalic ? #" font-style="italic""# : ""))
  }

  private init(attributes: String?) { self.attributes = attributes }

  /// Whether the font is ``DotFont``, which has the printable characters of ASCII only.
  package var isDots: Bool { attributes == nil }

  /// Whether the characters of the font can be drawn: false on a machine without fonts.
  package var isUsable: Bool { !mask(of: "0", scale: 2).isBlank }

  /// Draws a line of text.
  package func mask(of text: String, scale: Int) -> TextMask {
    guard let attributes else { return TextMask(dots: text.unicodeScalars, scale: scale) }
    let (shaped, tail) = Self.split(text.unicodeScalars)
    return cache.withLock { cache in
      let first = shaped.isEmpty ? nil : cache.mask(of: String(shaped), attributes, scale)
      let characters = cache.characters[scale] ?? Self.drawnCharacters(attributes, scale)
      cache.characters[scale] = characters
      let advance = TextMask.advance * scale
      // The mask of a text ends with its last visible character.
      let spaces = tail.isEmpty ? 0 : shaped.reversed().prefix { $0 == " " }.count
      let left = (first?.width ?? 0) + spaces * advance
      var mask = TextMask(width: left + tail.count * advance, scale: scale)
      if let first { mask.draw(first, x: 0) }
      for (index, scalar) in tail.enumerated() {
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
  package func fitting(_ text: String, width: Int, scale: Int) -> String {
    let whole = self.width(of: text, scale: scale)
    guard whole > width else { return text }
    guard width > 0 else { return "" }
    // All characters that fit if each has the mean width, and then fewer.
    var count = text.count * width / whole
    while count > 2 {
      let shown = text.prefix(count - 2) + ".."
      if self.width(of: String(shown), scale: scale) <= width { return String(shown) }
      count -= 1
    }
    return ""
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

  // MARK: Drawing

  /// The greatest number of stored texts; a window shows fewer at once.
  private static let maximumTexts = 64
  private static let latin = (0x20...0xFF).filter(isLatin).compactMap(Unicode.Scalar.init)

  /// Draws the characters of Latin-1, each centered in its column.
  ///
  /// Wide characters of a proportional font are cut off.
  private static func drawnCharacters(
    _ attributes: String, _ scale: Int
  ) -> [Unicode.Scalar: TextMask] {
    let advance = TextMask.advance * scale
    // Each character has empty space on both sides, so that a wide one does not reach the next.
    let texts = latin.enumerated().map { index, character in
      #"<text x="\#(index * 2 * advance + advance)" text-anchor="middle">"#
        + SVGImage.escaped(String(character)) + "</text>"
    }
    let image = image(of: texts, attributes, width: latin.count * 2 * advance, scale)
    let masks = latin.indices.map { index in
      let left = index * 2 * advance + advance / 2
      return image.map { mask($0, columns: left..<left + advance, scale) }
        ?? TextMask(width: advance, scale: scale)
    }
    return Dictionary(uniqueKeysWithValues: zip(latin, masks))
  }

  /// Draws a text as a whole; the mask ends with the last column that has a covered pixel.
  ///
  /// Text beyond 32000 pixels is cut off, because cairo draws no wider images.
  private static func drawn(_ text: String, _ attributes: String, _ scale: Int) -> TextMask {
    let margin = 2 * scale
    // No character is wider than twice its height.
    let space = 2 * fontSize(scale)
    let scalars = text.unicodeScalars.prefix(32_000 / space)
    let width = margin + (scalars.count + 1) * space
    let line = #"<text x="\#(margin)">"# + SVGImage.escaped(String(scalars)) + "</text>"
    guard let image = image(of: [line], attributes, width: width, scale) else {
      return TextMask(dots: text.unicodeScalars, scale: scale)
    }
    let whole = mask(image, columns: margin..<width, scale)
    let last = whole.coverage.indices.lazy.filter { whole.coverage[$0] > 0 }
      .map { $0 % whole.width }.max()
    return mask(image, columns: margin..<margin + (last.map { $0 + 1 } ?? 0), scale)
  }

  private static func fontSize(_ scale: Int) -> Int { (19 * scale + 1) / 2 }

  /// Draws elements of white text with the baseline of a mask; nil if librsvg cannot draw them.
  private static func image(
    of texts: [String], _ attributes: String, width: Int, _ scale: Int
  ) -> MediaFrame? {
    let baseline = (TextMask.overhang + TextMask.capHeight) * scale
    let document = """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(TextMask.rows * scale)">\
      <g transform="translate(0 \(baseline))" fill="#ffffff" xml:space="preserve" \
      font-size="\(fontSize(scale))" \(attributes)>\(texts.joined())</g></svg>
      """
    // Without librsvg, text is drawn as on a machine without fonts.
    guard let frame = try? SVGImage.draw(document), frame.pixelFormat == .bgra,
      frame.width >= width, frame.height >= TextMask.rows * scale
    else { return nil }
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
