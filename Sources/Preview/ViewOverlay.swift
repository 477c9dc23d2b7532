// SPDX-License-Identifier: Apache-2.0

package import OvercrankRaster

/// A figure over an image, in pixels of the view.
package struct ViewOverlay: Hashable, Sendable {
  /// The points of the figure, each of which is joined to the next one by a line.
  package let points: [Point]
  /// Whether a line joins the last point to the first one.
  package let isClosed: Bool
  /// A text at the lowest point; empty for none.
  package let label: String

  package init(_ points: [Point], isClosed: Bool, label: String = "") {
    (self.points, self.isClosed, self.label) = (points, isClosed, label)
  }
}

/// A ring that fills, with a text.
package struct ViewGauge: Hashable, Sendable {
  /// The filled part, from 0 to 1.
  package let part: Double
  package let label: String

  package init(part: Double, label: String) { (self.part, self.label) = (part, label) }
}
