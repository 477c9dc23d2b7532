// SPDX-License-Identifier: Apache-2.0

/// The name of a font as fontconfig writes it, such as `DejaVu Sans Mono:style=Bold Oblique`.
///
/// A backslash before one of the characters `-:,\` makes it part of the family's name. A pattern may
/// contain the family, `weight`, `slant`, `width`, `style`, and the constants of these, such as `bold`.
/// The size of the text follows from the frame, and the other properties have no effect on an image.
struct FontPattern {
  /// A reason why a pattern cannot be used, as the end of a sentence.
  struct Refusal: Error { let reason: String }

  private(set) var family = ""
  /// The weight of CSS, from 100 to 900.
  private(set) var weight = 400
  private(set) var isItalic = false
  /// The width as CSS names it.
  private(set) var stretch = "normal"

  /// Reads a pattern.
  init(_ text: String) throws(Refusal) {
    var elements = [""]
    var size: String?
    var isEscaped = false
    for character in text {
      let isFamily = elements.count == 1
      if isEscaped || !isFamily && character != ":" {
        elements[elements.count - 1].append(character)
        if isFamily { size?.append(character) }
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else if character == ":" {
        elements.append("")
      } else {
        elements[0].append(character)
        if character == "-" { size = "" } else { size?.append(character) }
      }
    }
    // Many names contain a hyphen, so only a number after it is a size.
    guard size.flatMap({ Double($0) }) == nil else {
      throw Refusal(reason: "has a size, but the size of text follows from the frame")
    }
    family = elements[0]
    guard !family.isEmpty, !text.contains("/") else {
      throw Refusal(reason: "is not the name of a font")
    }
    for element in elements.dropFirst() {
      let sides = element.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if sides.count == 2 {
        try set(sides[0].lowercased(), String(sides[1]))
      } else if !apply(element) {
        throw Refusal(reason: "has the unknown style \(element)")
      }
    }
  }

  private mutating func set(_ property: String, _ value: String) throws(Refusal) {
    let isKnown =
      switch property {
      case "style": applyStyle(value)
      case "weight": Self.nearest(value, Self.weights).map { weight = $0 } != nil
      case "width": Self.nearest(value, Self.widths).map { stretch = $0 } != nil
      case "slant": Self.nearest(value, Self.slants).map { isItalic = $0 } != nil
      default:
        throw Refusal(
          reason: "has the property \(property); only style, weight, slant and width can be chosen")
      }
    guard isKnown else { throw Refusal(reason: "has the unknown \(property) \(value)") }
  }

  /// Applies the words of a style such as `SemiBold Italic` or `Extra Light`.
  private mutating func applyStyle(_ style: String) -> Bool {
    var prefix = ""
    for word in style.lowercased().split(whereSeparator: { " -".contains($0) }) {
      prefix += word
      if ["semi", "demi", "extra", "ultra"].contains(prefix) { continue }
      guard apply(prefix) else { return false }
      prefix = ""
    }
    return prefix.isEmpty
  }

  /// Applies a constant such as `bold`.
  private mutating func apply(_ constant: String) -> Bool {
    let constant = constant.lowercased()
    if constant == "regular" || constant == "normal" { return true }
    if let known = Self.weights[constant] {
      weight = known.meaning
    } else if let known = Self.slants[constant] {
      isItalic = known.meaning
    } else if let known = Self.widths[constant] {
      stretch = known.meaning
    } else {
      return false
    }
    return true
  }

  // MARK: Constants

  private struct Constant<Meaning: Sendable>: Sendable {
    /// The value of fontconfig.
    let value: Double
    let meaning: Meaning
  }

  /// The meaning of a constant's name, or of the constant whose value is nearest to a number.
  private static func nearest<Meaning: Sendable>(
    _ text: String, _ constants: [String: Constant<Meaning>]
  ) -> Meaning? {
    if let known = constants[text.lowercased()] { return known.meaning }
    guard let number = Double(text), number.isFinite else { return nil }
    return constants.values.min {
      ($0.value - number).magnitude < ($1.value - number).magnitude
    }?.meaning
  }

  private static let weights: [String: Constant<Int>] = [
    "thin": Constant(value: 0, meaning: 100),
    "extralight": Constant(value: 40, meaning: 200),
    "ultralight": Constant(value: 40, meaning: 200),
    "light": Constant(value: 50, meaning: 300),
    "demilight": Constant(value: 55, meaning: 300),
    "semilight": Constant(value: 55, meaning: 300),
    "book": Constant(value: 75, meaning: 400),
    "regular": Constant(value: 80, meaning: 400),
    "normal": Constant(value: 80, meaning: 400),
    "medium": Constant(value: 100, meaning: 500),
    "demibold": Constant(value: 180, meaning: 600),
    "semibold": Constant(value: 180, meaning: 600),
    "bold": Constant(value: 200, meaning: 700),
    "extrabold": Constant(value: 205, meaning: 800),
    "ultrabold": Constant(value: 205, meaning: 800),
    "black": Constant(value: 210, meaning: 900),
    "heavy": Constant(value: 210, meaning: 900),
    "extrablack": Constant(value: 215, meaning: 900),
    "ultrablack": Constant(value: 215, meaning: 900),
  ]

  private static let slants: [String: Constant<Bool>] = [
    "roman": Constant(value: 0, meaning: false),
    "italic": Constant(value: 100, meaning: true),
    "oblique": Constant(value: 110, meaning: true),
  ]

  private static let widths: [String: Constant<String>] = [
    "ultracondensed": Constant(value: 50, meaning: "ultra-condensed"),
    "extracondensed": Constant(value: 63, meaning: "extra-condensed"),
    "condensed": Constant(value: 75, meaning: "condensed"),
    "semicondensed": Constant(value: 87, meaning: "semi-condensed"),
    "normal": Constant(value: 100, meaning: "normal"),
    "semiexpanded": Constant(value: 113, meaning: "semi-expanded"),
    "expanded": Constant(value: 125, meaning: "expanded"),
    "extraexpanded": Constant(value: 150, meaning: "extra-expanded"),
    "ultraexpanded": Constant(value: 200, meaning: "ultra-expanded"),
  ]
}
