// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankSimulatedCameras

/// The position of the synthetic camera's ball in an image, in pixels from the upper left corner.
package struct BallCenter {
  package let x: Double
  package let y: Double

  /// Finds the ball, which is darker than the wall around it; nil without a ball.
  ///
  /// - Parameters:
  ///   - width: Pixels from left to right.
  ///   - height: Pixels from top to bottom.
  ///   - luma: The brightness of a pixel by column and row, 0 ... 255.
  package init?(width: Int, height: Int, luma: (_ x: Int, _ y: Int) -> UInt8) {
    let geometry = SceneGeometry(width: width, height: height)
    let reach = Int(geometry.ballRadius) + 3
    let middle = Int(geometry.ballX)
    var (sumX, sumY, weight) = (0.0, 0.0, 0.0)
    let visible = Int(geometry.pixelsPerMeter * SceneGeometry.visibleHeight)
    for y in max(geometry.top, geometry.ground - visible)..<geometry.ground {
      for x in middle - reach..<middle + reach {
        // Pixels at the edge of the ball are weighted by their darkness.
        let share = min(1, max(0, (165 - Double(luma(x, y))) / 30))
        sumX += share * (Double(x) + 0.5)
        sumY += share * (Double(y) + 0.5)
        weight += share
      }
    }
    guard weight > 0 else { return nil }
    (x, y) = (sumX / weight, sumY / weight)
  }
}
