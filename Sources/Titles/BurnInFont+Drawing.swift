// SPDX-License-Identifier: Apache-2.0

import CDrawText
public import OvercrankExport
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore

extension BurnInFont {
  /// Draws the characters of an installed font with libavfilter's filter `drawtext`.
  ///
  /// ```swift
  /// render.burnIn = BurnIn(items: [.time], font: try BurnInFont(named: "monospace"))
  /// ```
  ///
  /// Any thread may call it. Takes about 0.2 seconds. Characters that are wider than two thirds of
  /// their height are cut off, so a font of fixed width fits best.
  ///
  /// - Parameter name: A family, such as `monospace`, or the path of a font file if it contains a
  ///   slash. fontconfig takes the most similar font that is installed for an unknown family.
  /// - Throws: `MediaError` with `.fileNotFound` if there is no such file, and `.burnInRefused` if the
  ///   font cannot be drawn.
  public init(named name: String) throws(MediaError) {
    if name.contains("/"), SystemFiles.kind(of: name) != .regular {
      throw MediaError(
        .fileNotFound, "\(name) is not a font file",
        recovery: "name a family, such as monospace, or one of the files that fc-list lists")
    }
    var coverage = [UInt8](
      repeating: 0, count: Self.characters.count * Self.cellWidth * Self.cellHeight)
    let status = coverage.withUnsafeMutableBufferPointer { cells in
      cells.baseAddress.map {
        dt_draw_characters(name, Int32(Self.cellWidth), Int32(Self.cellHeight), $0)
      } ?? 0
    }
    guard status >= 0 else {
      throw MediaError(
        .burnInRefused,
        "the font \(name) cannot be drawn: "
          + LibAVError("draw with", name, code: status).description,
        recovery: "choose another font, or leave it out")
    }
    self.init(coverage: coverage)
  }
}
