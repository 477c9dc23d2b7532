// SPDX-License-Identifier: Apache-2.0

public import OvercrankRaster

/// The axes in which the positions of objects are stated.
public struct ImageAxes: Hashable, Sendable, Codable {
  /// The direction in which y grows.
  public enum VerticalDirection: String, Hashable, Sendable, Codable, CaseIterable {
    /// Down, as the rows of an image are counted.
    case down
    /// Up, as in physics.
    case up
  }

  /// The point of the image at which both coordinates are zero.
  public var origin: Point
  /// The direction in which y grows.
  public var verticalDirection: VerticalDirection

  /// Creates axes.
  ///
  /// - Parameters:
  ///   - verticalDirection: The direction in which y grows.
  ///   - origin: The point at which both coordinates are zero. Nil for the upper left corner, or the
  ///     lower left corner if y grows upward.
  ///   - height: The height of the image as it is displayed, in pixels.
  public init(
    _ verticalDirection: VerticalDirection = .down, origin: Point? = nil,
    imageHeight height: Int
  ) {
    self.verticalDirection = verticalDirection
    self.origin =
      origin ?? Point(x: 0, y: verticalDirection == .up ? Double(height) : 0)
  }

  /// The coordinates of a point of the image.
  public func coordinates(of point: Point) -> Point {
    let down = point.y - origin.y
    return Point(x: point.x - origin.x, y: verticalDirection == .up ? -down : down)
  }

  /// The coordinates of a velocity in the image.
  public func coordinates(of velocity: ImageVelocity) -> ImageVelocity {
    ImageVelocity(x: velocity.x, y: verticalDirection == .up ? -velocity.y : velocity.y)
  }
}

/// A velocity in an image, in pixels per second.
public struct ImageVelocity: Hashable, Sendable, Codable {
  /// To the right.
  public var x: Double
  /// Down, or as the axes state.
  public var y: Double

  /// Creates a velocity.
  public init(x: Double, y: Double) { (self.x, self.y) = (x, y) }
}
