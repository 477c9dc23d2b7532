// SPDX-License-Identifier: Apache-2.0

import CDrawText
public import OvercrankExport
import OvercrankLibAV
public import OvercrankMediaCore

extension BurnInFont {
  /// Draws the characters of an installed font with libavfilter's `drawtext` filter.
  ///
  /// ```swift
  /// render.burnIn = BurnIn(items: [.time], font: try BurnInFont(named: "monospace"))
  /// ```
  ///
  /// May be called from any thread, and takes about 0.2 seconds. Characters that are wider than two
  /// thirds of their height are cut off, so a monospaced font is best.
  ///
  /// - Parameter name: The name of a font family, such as `DejaVu Sans Mono`, optionally with a
  ///   style, such as `monospace:bold`. If the font is not installed, fontconfig selects the most
  ///   similar installed font.
  /// - Throws: `MediaError` with `.burnInRefused` if the name is the path of a file, or if
  ///   libavfilter cannot draw the characters.
  public init(named name: String) throws(MediaError) {
    guard !name.isEmpty, !name.contains("/") else {
      throw Self.refused(name, "is not the name of a font", nil)
    }
    var coverage = [UInt8](
      repeating: 0, count: Self.characters.count * Self.cellWidth * Self.cellHeight)
    do throws(CallFailure) {
      try CallFailure.checkDrawing(name) {
        coverage.withUnsafeMutableBufferPointer { cells in
          cells.baseAddress.map {
            dt_draw_characters(
              name, Int32(Self.characters.lowerBound), Int32(Self.characters.count),
              Int32(Self.cellWidth), Int32(Self.cellHeight), $0)
          } ?? 0
        }
      }
    } catch {
      throw Self.refused(name, "cannot be drawn", error)
    }
    self.init(coverage: coverage)
  }

  private static func refused(
    _ name: String, _ reason: String, _ error: CallFailure?
  ) -> MediaError {
    MediaError(
      .burnInRefused, "\(name) \(reason)",
      recovery: "name a family that fc-list lists, or leave the font out", cause: error?.cause)
  }
}
