// SPDX-License-Identifier: Apache-2.0

package import OvercrankRaster

/// A shape that is drawn on an image, in pixels of the displayed image.
package struct ViewShape: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable, Codable {
    /// One point.
    case point
    /// Two points, joined by a line.
    case distance
    /// Three points; the angle is at the second one.
    case angle
    /// The upper left and the lower right corner of a rectangle.
    case box

    /// The number of points of the shape.
    package var pointCount: Int {
      switch self {
      case .point: 1
      case .distance, .box: 2
      case .angle: 3
      }
    }
  }

  package let kind: Kind
  package let points: [Point]
  /// A text beside the last point; empty for none.
  package var label = ""

  package init(_ kind: Kind, _ points: [Point]) { (self.kind, self.points) = (kind, points) }
}
