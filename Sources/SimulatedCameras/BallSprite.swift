// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// A ball lit from the upper left, at a position with fractions of a pixel.
struct BallSprite {
  private let radius: Float
  private let x: Float
  private let y: Float

  init(radius: Double, x: Double, y: Double) {
    self.radius = Float(radius)
    self.x = Float(x)
    self.y = Float(y)
  }

  /// Draws the part of the ball in a rectangle of even coordinates.
  ///
  /// Pixels at the edge are blended by the fraction that the ball covers.
  func draw(in rect: PixelRect, into image: inout SceneImage) {
    let stride = image.stride
    image.luma.withUnsafeMutableBufferPointer { luma in
      for row in rect.rows {
        let dy = Float(row) + 0.5 - y
        let (columns, inner) = span(dy, edge: 1)
        let shade = 96 - 22.4 * dy / radius
        let spotY = (dy / radius + 0.4) * (dy / radius + 0.4)
        for column in columns.clamped(to: rect.columns) {
          let dx = Float(column) + 0.5 - x
          let spotX = dx / radius + 0.35
          // The luma of the ball is at most 140. The wall is brighter everywhere, so a program can
          // find the ball by a threshold.
          let ball = shade - 16 * dx / radius + 26 * max(0, 1 - 8 * (spotX * spotX + spotY))
          let index = row * stride + column
          let share = abs(dx) < inner ? 1 : coverage(dx, dy, edge: 1)
          luma[index] = blend(luma[index], ball, share)
        }
      }
    }
    drawChroma(&image.cb, 78, in: rect, stride: stride / 2)
    drawChroma(&image.cr, 204, in: rect, stride: stride / 2)
  }

  private func drawChroma(_ plane: inout [UInt8], _ ball: Float, in rect: PixelRect, stride: Int) {
    plane.withUnsafeMutableBufferPointer { plane in
      for row in rect.y / 2..<rect.bottom / 2 {
        let dy = Float(2 * row + 1) - y
        let (columns, inner) = span(dy, edge: 2)
        let visible = columns.clamped(to: rect.columns)
        for column in visible.lowerBound / 2..<(visible.upperBound + 1) / 2 {
          let dx = Float(2 * column + 1) - x
          let index = row * stride + column
          let share = abs(dx) < inner ? 1 : coverage(dx, dy, edge: 2)
          plane[index] = blend(plane[index], ball, share)
        }
      }
    }
  }

  private func blend(_ below: UInt8, _ above: Float, _ share: Float) -> UInt8 {
    UInt8(Float(below) + (above - Float(below)) * share + 0.5)
  }

  /// For one pixel row of the ball: the columns that the ball may touch, and the horizontal
  /// distance from its center up to which the ball covers pixels completely.
  private func span(_ dy: Float, edge: Float) -> (columns: Range<Int>, inner: Float) {
    let (outer, inner) = (radius + edge, radius - edge)
    let reach = max(0, outer * outer - dy * dy).squareRoot()
    let covered = inner > 0 ? max(0, inner * inner - dy * dy).squareRoot() : 0
    return (Int(x - reach - 1)..<Int(x + reach + 2), covered)
  }

  /// The fraction of a pixel that the ball covers.
  ///
  /// `dx` and `dy` are the offset of the pixel from the center of the ball.
  private func coverage(_ dx: Float, _ dy: Float, edge: Float) -> Float {
    min(1, max(0, (radius - (dx * dx + dy * dy).squareRoot()) / edge + 0.5))
  }
}

/// The shadow of the ball on the ground.
struct BallShadow: Sendable {
  let rect: PixelRect
  /// The darkness of the shadow at each pixel, from 0 to 255.
  ///
  /// The center has 255.
  private let weights: [UInt8]

  init(in rect: PixelRect) {
    self.rect = rect
    let middleX = Float(rect.x + rect.right) / 2
    let middleY = Float(rect.y + rect.bottom) / 2
    let (reachX, reachY) = (Float(rect.width) / 2, Float(rect.height) / 2)
    weights = rect.rows.flatMap { y in
      rect.columns.map { x in
        let (dx, dy) = ((Float(x) + 0.5 - middleX) / reachX, (Float(y) + 0.5 - middleY) / reachY)
        return UInt8(255 * min(1, 1.6 * max(0, 1 - dx * dx - dy * dy)))
      }
    }
  }

  /// The darkness of the shadow's center for a ball at a height in meters.
  ///
  /// The unit is 1/64: 0 has no effect, and 64 is black.
  func shade(height: Double) -> Int {
    Int(max(6, 48 * (1 - height / SceneGeometry.visibleHeight)))
  }

  /// Draws the shadow over the luma of the ground, which is read from another image.
  func draw(_ shade: Int, on ground: borrowing SceneImage, into image: inout SceneImage) {
    var index = 0
    for y in rect.rows {
      for x in rect.columns {
        let place = y * image.stride + x
        let luma = Int(ground.luma[place])
        image.luma[place] = UInt8(luma - luma * shade * Int(weights[index]) / (64 * 255))
        index += 1
      }
    }
  }
}
