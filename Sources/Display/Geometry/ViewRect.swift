// SPDX-License-Identifier: Apache-2.0

/// A rectangle of whole pixels, which contains its left and upper edges but not its right and lower
/// edges.
struct ViewRect: Hashable, Sendable {
  var x: Int
  var y: Int
  var width: Int
  var height: Int

  var right: Int { x + width }
  var bottom: Int { y + height }
  var isEmpty: Bool { width <= 0 || height <= 0 }

  func contains(_ point: ViewPoint) -> Bool {
    point.x >= Double(x) && point.x < Double(right) && point.y >= Double(y)
      && point.y < Double(bottom)
  }

  /// The rectangle, reduced by a border of the same width on each side.
  func inset(by border: Int) -> ViewRect {
    ViewRect(
      x: x + border, y: y + border, width: max(0, width - 2 * border),
      height: max(0, height - 2 * border))
  }

  /// Converts a rectangle of a clockwise rotated image to the rectangle of the same pixels before
  /// the rotation.
  ///
  /// - Parameters:
  ///   - degrees: The rotation, a multiple of 90.
  ///   - stored: The size of the image before the rotation.
  /// - Returns: The rectangle in the image before the rotation.
  func unrotated(by degrees: Int, in stored: PixelSize) -> ViewRect {
    switch degrees {
    case 90: ViewRect(x: y, y: stored.height - right, width: height, height: width)
    case 180:
      ViewRect(x: stored.width - right, y: stored.height - bottom, width: width, height: height)
    case 270: ViewRect(x: stored.width - bottom, y: x, width: height, height: width)
    default: self
    }
  }
}
