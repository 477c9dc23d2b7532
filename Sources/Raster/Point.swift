// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A point of an image or a view, measured from the upper left corner.
///
/// The unit depends on the use: pixels of an image, whose first pixel has its center at (0.5, 0.5);
/// the units of a view; or fractions of the width and height of an image.
public struct Point: Hashable, Sendable, Codable {
  /// The distance from the left edge.
  public var x: Double
  /// The distance from the upper edge.
  public var y: Double

  /// Creates a point.
  public init(x: Double, y: Double) { (self.x, self.y) = (x, y) }

  /// The middle of an image, in fractions of its width and height.
  public static let center = Point(x: 0.5, y: 0.5)

  /// The distance to another point.
  public func distance(to other: Point) -> Double { hypot(other.x - x, other.y - y) }
}

/// A point of an image, in fractions of its width and height.
@available(*, deprecated, renamed: "Point")
public typealias PointOfInterest = Point
/// A point of a view or an image.
@available(*, deprecated, renamed: "Point")
public typealias PreviewPoint = Point
/// A point of an image in pixels.
@available(*, deprecated, renamed: "Point")
public typealias ImagePoint = Point
