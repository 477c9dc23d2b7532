// SPDX-License-Identifier: Apache-2.0

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
