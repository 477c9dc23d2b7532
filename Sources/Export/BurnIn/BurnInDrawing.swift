// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore
import OvercrankRaster

/// Draws lines of text and a logo into frames of one size and pixel format.
package struct BurnInDrawing: Sendable {
  private let pixels: PixelCodes
  private let logo: LogoOverlay?
  private let glyphs: GlyphCache?

  /// The number of characters that fit in a line; longer lines are cut off.
  private static let lineLength = 22

  /// Prepares to draw text and a logo.
  ///
  /// - Throws: `MediaError` with `.burnInRefused` for a pixel format that cannot be drawn on, or if
  ///   the logo cannot be read.
  package init(
    _ burnIn: BurnIn, width: Int, height: Int, pixelFormat: LibAVPixelFormat, isFullRange: Bool,
    _ transfer: TransferFunction
  ) throws {
    guard let pixels = PixelCodes(pixelFormat: pixelFormat, isFullRange: isFullRange, transfer)
    else {
      throw MediaError(
        .burnInRefused, "text cannot be drawn on frames of format \(pixelFormat.name)",
        recovery: Recovery("choose H.264", .change(.codec)))
    }
    self.pixels = pixels
    glyphs = burnIn.font.map { GlyphCache($0) }
    logo = try burnIn.logoPath.map {
      try LogoOverlay(
        $0, in: VideoSize(width: width, height: height), pixels, margin: 4 * Self.scale(width))
    }
  }

  /// Returns the size of a font dot in a frame, in pixels.
  private static func scale(_ width: Int) -> Int {
    max(1, min(max(2, width / 320), width / (lineLength * (DotFont.width + 1) + 4)))
  }

  /// Returns the height of a number of text lines, in pixels.
  ///
  /// `width` is the width of the part of the frame in which the text is drawn.
  package static func height(ofLines count: Int, inWidth width: Int) -> Int {
    ((count * (DotFont.height + 2) + 2) * scale(width) + 3) & ~3
  }

  /// Draws lines of text into the lower left corner of a part of a frame.
  ///
  /// - Parameters:
  ///   - lines: The lines from top to bottom, in ASCII.
  ///   - x: The left edge of the part, in pixels.
  ///   - width: The width of the part in pixels; text beyond it is cut off.
  ///   - bottom: The pixel row just below the text.
  ///   - frame: The frame to change.
  package func draw(_ lines: [String], x: Int = 0, width: Int, bottom: Int, on frame: MediaFrame) {
    guard let longest = lines.map(\.utf8.count).max() else { return }
    let scale = Self.scale(width)
    let advance = (DotFont.width + 1) * scale
    let lineHeight = (DotFont.height + 2) * scale
    let top = max(0, bottom - lines.count * lineHeight - 2 * scale) & ~3
    let right = min(width, (longest * advance + 3 * scale + 3) & ~3)
    pixels.fill(x: x..<x + right, y: top..<max(top, bottom), .black, on: frame)
    for (number, line) in lines.enumerated() {
      for (position, character) in line.utf8.enumerated() {
        let (left, upper) = (2 * scale + position * advance, top + 2 * scale + number * lineHeight)
        guard left + advance <= width else { break }
        // In a frame so narrow that a font dot is one pixel, an installed font would be too small
        // to read.
        if scale > 1, let glyphs {
          draw(
            glyphs.coverage(of: character, width: advance, height: lineHeight), width: advance,
            x: x + left, y: upper - scale, on: frame)
        } else {
          draw(character, scale, x: x + left, y: upper, on: frame)
        }
      }
    }
  }

  /// Draws a character of the dot font.
  private func draw(_ character: UInt8, _ scale: Int, x: Int, y: Int, on frame: MediaFrame) {
    DotFont.forEachRectangle(of: character, x: x, y: y, scale: scale) {
      pixels.fill(x: $0.columns, y: $0.rows, .white, on: frame)
    }
  }

  /// Draws a character of an installed font, given the coverage of each pixel.
  private func draw(_ coverage: [Double], width: Int, x: Int, y: Int, on frame: MediaFrame) {
    for (index, share) in coverage.enumerated() where share > 0 {
      pixels.mixWhite(share: share, x: x + index % width, y: y + index / width, on: frame)
    }
  }

  /// Draws the logo into the upper right corner of a frame.
  package func drawLogo(on frame: MediaFrame) { logo?.draw(on: frame, pixels) }
}
