// SPDX-License-Identifier: Apache-2.0

/// One step of drawing a window; a list of them draws all of it, from back to front.
enum DrawingCommand: Hashable, Sendable {
  /// An image that was given to the window before.
  enum Image: Hashable, Sendable {
    /// The frame of a pane.
    case frame(pane: Int)
    /// A thumbnail by its position in the line.
    case thumbnail(Int)
  }

  case fill(ViewRect, DisplayColor)
  /// Text in ``DotFont``, from its upper left corner.
  case text(String, x: Int, y: Int, scale: Int, DisplayColor)
  /// A part of an image, rotated clockwise into a rectangle.
  ///
  /// `source` is in the pixels of the image before the rotation. Pixels are smoothed, or shown as
  /// squares.
  case image(Image, source: ViewRect, destination: ViewRect, rotation: Int, isSmooth: Bool)
}
