// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
public import OvercrankMediaCore

/// A font for text in frames.
///
/// Each character has the same width, whatever the font, so a fixed-width font looks best.
public struct BurnInFont: Hashable, Sendable, CustomDebugStringConvertible {
  /// The font as it is drawn.
  package let font: InstalledFont

  /// The fixed-width font of the system; the dot font on a machine without fonts.
  public static let standard = BurnInFont(font: .standard)

  /// The library's own font of 5 by 7 dots, which programs can read back.
  public static let dots = BurnInFont(font: .dots)

  private init(font: InstalledFont) { self.font = font }

  /// Finds an installed font.
  ///
  /// ```swift
  /// render.burnIn = BurnIn(items: [.time], font: try BurnInFont(named: "monospace"))
  /// ```
  ///
  /// May be called from any thread. Characters that are wider than two thirds of their height are
  /// cut off.
  ///
  /// - Parameter name: The name of a font family, such as `DejaVu Sans Mono`, optionally with a
  ///   style, such as `monospace:bold` or `monospace:light:italic`. If the font is not installed,
  ///   fontconfig selects the most similar installed font. The name `dots` means ``dots``.
  /// - Throws: `MediaError` with `.burnInRefused` if the name is the path of a file or has an
  ///   unknown style, or if no font is installed.
  public init(named name: String) throws(MediaError) {
    guard name != "dots" else {
      self = .dots
      return
    }
    let parts = name.split(separator: ":", omittingEmptySubsequences: false)
    var (weight, isItalic) = (400, false)
    for part in parts.dropFirst() {
      let style = part.lowercased()
      if style == "italic" || style == "oblique" {
        isItalic = true
      } else if let known = Self.weights[style] {
        weight = known
      } else {
        throw Self.refused(name, "has an unknown style")
      }
    }
    guard let family = parts.first, !family.isEmpty, !name.contains("/") else {
      throw Self.refused(name, "is not the name of a font")
    }
    font = InstalledFont(family: String(family), weight: weight, isItalic: isItalic)
    guard font.isUsable else { throw Self.refused(name, "cannot be drawn") }
  }

  /// The weights of fonts, as fontconfig names them.
  private static let weights = [
    "thin": 100, "extralight": 200, "light": 300, "regular": 400, "medium": 500, "semibold": 600,
    "bold": 700, "extrabold": 800, "black": 900,
  ]

  private static func refused(_ name: String, _ reason: String) -> MediaError {
    MediaError(
      .burnInRefused, "\(name) \(reason)",
      recovery: "name a family that fc-list lists, or leave the font out")
  }

  /// A hash of the font's pixels, which makes the digests of exports with different fonts differ.
  public var debugDescription: String { "font \(String(font.fingerprint, radix: 16))" }
}
