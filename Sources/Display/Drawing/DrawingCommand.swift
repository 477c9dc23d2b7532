// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankRaster

/// A command that draws a part of a window.
///
/// A list of commands draws the whole window, from back to front.
enum DrawingCommand: Hashable, Sendable {
  /// An image whose pixels were uploaded to the window's renderer earlier.
  enum Image: Hashable, Sendable {
    /// The video frame of the pane with this index.
    case frame(pane: Int)
    /// The thumbnail at this index in the row of thumbnails.
    case thumbnail(Int)
  }

  case fill(PixelRect, Color)
  /// A line inside a rectangle, with a width in pixels.
  case line(Point, Point, width: Int, clip: PixelRect, Color)
  /// Text, from the upper left corner of its capital letters.
  case text(String, x: Int, y: Int, scale: Int, Color)
  /// A part of an image, rotated clockwise and scaled to fill a rectangle of the window.
  ///
  /// `source` is the part, in pixels of the image before the rotation. If `isSmooth` is true,
  /// pixels are interpolated. Otherwise each pixel is drawn as a square.
  case image(Image, source: PixelRect, destination: PixelRect, rotation: Int, isSmooth: Bool)
}

/// Figures and text that can be read on any image, also by people who see few colors.
extension DrawingCommand {
  /// Lines in a bright color with a dark edge.
  static func outlined(
    _ lines: [(Point, Point)], clip: PixelRect, _ color: Color = .range
  ) -> [DrawingCommand] {
    [(5, Color.overlay), (2, color)].flatMap { width, color in
      lines.map { .line($0.0, $0.1, width: width, clip: clip, color) }
    }
  }

  /// The lines between consecutive points, and back to the first point if the figure is closed.
  static func lines(through points: [Point], isClosed: Bool) -> [(Point, Point)] {
    let ends = points.dropFirst() + (isClosed ? points.prefix(1) : [])
    return Array(zip(points, ends))
  }

  /// Text on a shaded background.
  static func label(
    _ text: String, x: Int, y: Int, _ scale: Int, within width: Int
  ) -> [DrawingCommand] {
    let font = InstalledFont.standard
    // Text that is too wide for the available width at the given scale is drawn at scale 1.
    let scale = font.width(of: text, scale: scale) + 12 <= width ? scale : 1
    let shown = font.fitting(text, width: width - 12, scale: scale)
    guard !shown.isEmpty else { return [] }
    let area = PixelRect(
      x: x, y: y, width: font.width(of: shown, scale: scale) + 12,
      height: TextMask.capHeight * scale + 12)
    return [.fill(area, .shade), .text(shown, x: x + 6, y: y + 6, scale: scale, .text)]
  }
}
