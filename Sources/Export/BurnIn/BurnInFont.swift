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
  /// - Parameter name: The name of a font as fontconfig writes it: a family, such as `DejaVu Sans
  ///   Mono`, optionally with a style, such as `monospace:bold`, `monospace:light:italic`, or
  ///   `monospace:style=Bold Oblique`. `weight`, `slant` and `width` are further properties. If the
  ///   font is not installed, fontconfig selects the most similar installed font. The name `dots`
  ///   means ``dots``.
  /// - Throws: `MediaError` with `.burnInRefused` if the name is the path of a file, or has a size,
  ///   an unknown style or another property, or if no font is installed; `.missingComponent` if FFmpeg
  ///   cannot draw text; `.outOfMemory`.
  public init(named name: String) throws(MediaError) {
    guard name != "dots" else {
      self = .dots
      return
    }
    do throws(FontPattern.Refusal) {
      let pattern = try FontPattern(name)
      font = InstalledFont(
        family: pattern.family, weight: pattern.weight, isItalic: pattern.isItalic,
        stretch: pattern.stretch)
    } catch {
      throw MediaError(
        .burnInRefused, "\(name.isEmpty ? "an empty name" : name) \(error.reason)",
        recovery: "name a family that fc-list lists, or leave the font out")
    }
    try check(scale: 2)
  }

  /// Throws if text of a size cannot be drawn.
  func check(scale: Int) throws(MediaError) {
    do throws(CallFailure) { try font.check(scale: scale) } catch { throw Self.error(error) }
  }

  /// The reason why ``standard`` is ``dots``: `.missingComponent` if FFmpeg cannot draw text,
  /// `.burnInRefused` if no font is installed; nil if the system's font can be drawn.
  public static var standardFailure: MediaError? { InstalledFont.standardFailure.map(error) }

  /// The characters of a text that neither this font nor another installed font has, each once.
  ///
  /// They are drawn as boxes that contain their code, and in ``dots`` as question marks.
  ///
  /// May be called from any thread.
  public func missingCharacters(of text: String) -> String { font.missingCharacters(of: text) }

  private static func error(_ failure: CallFailure) -> MediaError {
    MediaError(failure, at: .drawingText)
  }

  /// A hash of the font's pixels, which makes the digests of exports with different fonts differ.
  public var debugDescription: String { "font \(String(font.fingerprint, radix: 16))" }
}

extension CallStage {
  /// Drawing text with an installed font.
  fileprivate static let drawingText = CallStage(
    [
      .notFound: Row(.missingComponent, "use an FFmpeg with librsvg, or the font of dots"),
      .notSupported: Row(.burnInRefused, "install a font, such as DejaVu, or use the font of dots"),
    ], other: Row(.burnInRefused, "use the font of dots"))
}
