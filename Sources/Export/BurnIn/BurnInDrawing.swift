// SPDX-License-Identifier: Apache-2.0

package import OvercrankLibAV
package import OvercrankMediaCore
import OvercrankRaster

/// Draws lines of text and a logo into frames of one size and pixel format.
package struct BurnInDrawing: Sendable {
  private let pixels: PixelCodes
  private let logo: LogoOverlay?
  private let font: InstalledFont

  /// The number of characters that fit in a line; longer lines are cut off.
  private static let lineLength = 22

  /// Prepares to draw text and a logo.
  ///
  /// - Throws: `MediaError` with `.burnInRefused` for a pixel format that cannot be drawn on, as
  ///   ``BurnInFont/init(named:)`` does if the text cannot be drawn, or if the logo cannot be read.
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
    let font = burnIn.font ?? .standard
    if !burnIn.items.isEmpty { try font.check(scale: Self.scale(width)) }
    self.font = font.font
    logo = try burnIn.logoPath.map {
      try LogoOverlay(
        $0, in: VideoSize(width: width, height: height), pixels, margin: 4 * Self.scale(width))
    }
  }

  /// Returns the scale of text in a frame.
  private static func scale(_ width: Int) -> Int {
    max(1, min(max(2, width / 320), width / (lineLength * TextMask.advance + 4)))
  }

  /// Returns the height of a number of text lines, in pixels.
  ///
  /// `width` is the width of the part of the frame in which the text is drawn.
  package static func height(ofLines count: Int, inWidth width: Int) -> Int {
    ((count * (TextMask.capHeight + 2) + 2) * scale(width) + 3) & ~3
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
    let advance = TextMask.advance * scale
    let lineHeight = (TextMask.capHeight + 2) * scale
    let top = max(0, bottom - lines.count * lineHeight - 2 * scale) & ~3
    let right = min(width, (longest * advance + 3 * scale + 3) & ~3)
    // Installed fonts have letters that reach below the baseline by twice the scale.
    let margin = (font.isDots ? 2 : 1) * scale
    pixels.fillBlack(x: x..<x + right, y: top..<max(top, bottom), on: frame)
    for (number, line) in lines.enumerated() {
      let text = String(line.prefix(max(0, (width - 2 * scale) / advance)))
      font.mask(of: text, scale: scale).forEachPixel(
        x: x + 2 * scale, y: top + margin + number * lineHeight
      ) { x, y, coverage in
        guard top..<bottom ~= y else { return }
        pixels.mixWhite(share: Double(coverage) / 255, x: x, y: y, on: frame)
      }
    }
  }

  /// Draws the logo into the upper right corner of a frame.
  package func drawLogo(on frame: MediaFrame) { logo?.draw(on: frame, pixels) }
}
