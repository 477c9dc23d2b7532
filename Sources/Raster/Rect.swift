// SPDX-License-Identifier: Apache-2.0

/// A rectangle of an image or a view, measured from the upper left corner.
///
/// The unit depends on the use: the units of a view, or fractions of the width and height of an
/// image.
public struct Rect: Hashable, Sendable, Codable {
  /// The distance of the left edge from that of the view or image.
  public var x: Double
  /// The distance of the upper edge from that of the view or image.
  public var y: Double
  /// The width, not negative.
  public var width: Double
  /// The height, not negative.
  public var height: Double

  /// Creates a rectangle.
  public init(x: Double, y: Double, width: Double, height: Double) {
    (self.x, self.y, self.width, self.height) = (x, y, width, height)
  }

  /// Creates the smallest rectangle that contains two points.
  package init(_ first: Point, _ second: Point) {
    self.init(
      x: min(first.x, second.x), y: min(first.y, second.y), width: abs(first.x - second.x),
      height: abs(first.y - second.y))
  }
}

/// A rectangle of a view or an image.
@available(*, deprecated, renamed: "Rect")
public typealias PreviewRect = Rect
