// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// The positions of the ball, the ground and the ruler in an image.
///
/// Coordinates are in pixels from the upper left corner. The center of the first pixel is at 0.5.
package struct SceneGeometry: Sendable {
  /// The visible height above the ground, in meters.
  ///
  /// A narrow image shows a greater height, because its scale is reduced until the ball takes at
  /// most a quarter of the width.
  package static let visibleHeight = 1.5
  /// The radius of the ball, in meters.
  package static let ballRadius = 0.1

  /// The height of the area above the scene, in rows.
  ///
  /// It contains the frame number as cells and digits.
  package let top: Int
  /// The first row of the ground.
  ///
  /// When the ball touches the ground, its lower edge is at the upper edge of this row.
  package let ground: Int
  /// The scale of the scene, in pixels per meter.
  package let pixelsPerMeter: Double
  /// The horizontal center of the ball, in pixels.
  package let ballX: Double

  package init(width: Int, height: Int) {
    top = FrameNumberPattern.Layout(width: width).height + TestPattern.figureBandHeight
    ground = height - max(3, (height - top) / 10)
    // In a narrow image, the scale is limited so that the diameter of the ball is at most a quarter
    // of the width.
    pixelsPerMeter = min(
      Double(ground - top) / Self.visibleHeight, Double(width) / 8 / Self.ballRadius)
    ballX = (Double(width) * 0.6).rounded()
  }

  /// The radius of the ball in pixels.
  package var ballRadius: Double { Self.ballRadius * pixelsPerMeter }

  /// The vertical center of the ball, in pixels, while the ball's lower edge is at a height in
  /// meters above the ground.
  package func ballY(atHeight height: Double) -> Double {
    Double(ground) - (height + Self.ballRadius) * pixelsPerMeter
  }

  /// The row whose upper edge is at a height in meters above the ground, rounded to a whole row.
  func row(atHeight height: Double) -> Int {
    ground - Int((height * pixelsPerMeter).rounded())
  }

  /// A rectangle with even coordinates that contains the ball while its vertical center is at `y`,
  /// in pixels.
  func ballRect(y: Double) -> PixelRect {
    func range(_ middle: Double) -> Range<Int> {
      Int(middle - ballRadius - 1)..<Int(middle + ballRadius + 2)
    }
    return PixelRect(x: range(ballX), y: range(y).clamped(to: top..<ground)).even
  }

  /// A rectangle with even coordinates that contains the ball's shadow on the ground, in an image
  /// with `height` rows.
  func shadowRect(height: Int) -> PixelRect {
    let depth = height - ground
    let first = (ground + 1 + depth / 8) & ~1
    let reach = Int(ballRadius * 1.2) + 1
    return PixelRect(
      x: Int(ballX) - reach..<Int(ballX) + reach, y: first..<max(first + 2, ground + depth * 5 / 8)
    ).even
  }
}
