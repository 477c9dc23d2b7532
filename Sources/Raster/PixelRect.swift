// SPDX-License-Identifier: Apache-2.0

/// A rectangle of whole pixels, which contains its left and upper edges but not its right and lower
/// edges.
public struct PixelRect: Hashable, Sendable, Codable {
  /// The first column.
  public var x: Int
  /// The first row.
  public var y: Int
  /// The number of columns.
  public var width: Int
  /// The number of rows.
  public var height: Int

  /// Creates a rectangle.
  public init(x: Int, y: Int, width: Int, height: Int) {
    (self.x, self.y, self.width, self.height) = (x, y, width, height)
  }

  /// Creates the rectangle of some columns and rows.
  package init(x columns: Range<Int>, y rows: Range<Int>) {
    self.init(x: columns.lowerBound, y: rows.lowerBound, width: columns.count, height: rows.count)
  }

  package var right: Int { x + width }
  package var bottom: Int { y + height }
  package var columns: Range<Int> { x..<right }
  package var rows: Range<Int> { y..<bottom }
  package var isEmpty: Bool { width <= 0 || height <= 0 }

  package func contains(_ point: Point) -> Bool {
    point.x >= Double(x) && point.x < Double(right) && point.y >= Double(y)
      && point.y < Double(bottom)
  }

  /// The part of the rectangle inside an image.
  package func clamped(width limit: Int, height heightLimit: Int) -> PixelRect {
    let (left, top) = (min(max(0, x), limit), min(max(0, y), heightLimit))
    return PixelRect(
      x: left, y: top, width: max(0, min(limit, right) - left),
      height: max(0, min(heightLimit, bottom) - top))
  }

  /// The rectangle with a margin at each side.
  package func expanded(by margin: Int) -> PixelRect {
    PixelRect(x: x - margin..<right + margin, y: y - margin..<bottom + margin)
  }

  /// The smallest rectangle with even coordinates that contains this rectangle.
  package var even: PixelRect {
    PixelRect(x: x & ~1..<(right + 1) & ~1, y: y & ~1..<(bottom + 1) & ~1)
  }

  /// Converts a rectangle of a clockwise rotated image to the rectangle of the same pixels before
  /// the rotation.
  ///
  /// - Parameters:
  ///   - degrees: The rotation, a multiple of 90.
  ///   - stored: The size of the image before the rotation.
  /// - Returns: The rectangle in the image before the rotation.
  package func unrotated(by degrees: Int, in stored: VideoSize) -> PixelRect {
    switch degrees {
    case 90: PixelRect(x: y, y: stored.height - right, width: height, height: width)
    case 180:
      PixelRect(x: stored.width - right, y: stored.height - bottom, width: width, height: height)
    case 270: PixelRect(x: stored.width - bottom, y: x, width: height, height: width)
    default: self
    }
  }
}

/// A rectangle of whole pixels.
@available(*, deprecated, renamed: "PixelRect")
public typealias PixelBox = PixelRect
