// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankRaster

/// The fixed parts of the scene: a wall with a grid of 20 cm, the ground, a ruler in meters, a line
/// at the highest position of the ball, and the panel of the stop-watch.
///
/// Details that do not fit into a small image are omitted.
struct SceneBackground {
  let width: Int
  let height: Int
  let ball: BouncingBall
  let geometry: SceneGeometry
  let stopWatch: StopWatchLayout

  private static let ground = SceneColor(luma: 122, cb: 116, cr: 138)
  private static let edge = SceneColor(luma: 52, cb: 124, cr: 132)
  private static let ink: UInt8 = 52
  private static let mark = SceneColor(luma: 172, cb: 108, cr: 164)

  func image() -> SceneImage {
    var image = SceneImage(width: width, height: height)
    drawWall(&image)
    drawGround(&image)
    drawRuler(&image)
    drawMark(&image)
    drawStopWatch(&image)
    return image
  }

  private var lineWidth: Int { max(1, Int(geometry.pixelsPerMeter / 150)) }
  /// The distance between two lines of the ruler in the background, in pixels.
  ///
  /// It corresponds to 10 cm.
  private var cell: Double { geometry.pixelsPerMeter / 10 }

  private func drawWall(_ image: inout SceneImage) {
    let rows = geometry.top..<geometry.ground
    for y in rows {
      // The luma changes only every 8 rows, so most JPEG blocks have one value and need few bytes.
      let luma = 218 - 22 * ((y & ~7) - geometry.top) / rows.count
      image.fill(
        PixelRect(x: 0..<image.stride, y: y..<y + 1),
        SceneColor(luma: UInt8(luma), cb: 131, cr: 126))
    }
    guard cell >= 4 else { return }
    var distance = 0.0
    while distance < Double(max(width, height)) {
      let y = geometry.ground - Int(distance.rounded())
      if y >= geometry.top { darken(PixelRect(x: 0..<image.stride, y: y..<y + 1), &image) }
      for side in distance == 0 ? [1.0] : [-1, 1] {
        let x = Int((geometry.ballX + side * distance).rounded())
        darken(PixelRect(x: x..<x + 1, y: geometry.top..<geometry.ground), &image)
      }
      distance += 2 * cell
    }
  }

  private func darken(_ rect: PixelRect, _ image: inout SceneImage) {
    let rect = rect.clamped(width: image.stride, height: image.rows)
    for y in rect.rows {
      for x in rect.columns { image.luma[y * image.stride + x] -= 14 }
    }
  }

  private func drawGround(_ image: inout SceneImage) {
    let all = 0..<image.stride
    image.fill(PixelRect(x: all, y: geometry.ground..<image.rows), Self.ground)
    image.fill(
      PixelRect(x: all, y: geometry.ground..<geometry.ground + lineWidth), luma: Self.edge.luma)
  }

  private var rulerX: Int { width * 4 / 5 }

  private func drawRuler(_ image: inout SceneImage) {
    let top = max(geometry.top, geometry.row(atHeight: SceneGeometry.visibleHeight))
    image.fill(
      PixelRect(x: rulerX..<rulerX + lineWidth, y: top..<geometry.ground), luma: Self.ink)
    let scale = max(1, Int(geometry.pixelsPerMeter / 110))
    let isLabelled = cell * 5 > Double(10 * scale)
    for tenth in 1...15 {
      let y = geometry.row(atHeight: Double(tenth) / 10)
      let isLong = tenth % 5 == 0
      guard y >= geometry.top, isLong || cell >= 4 else { continue }
      let length = max(2, Int(cell * (isLong ? 0.6 : 0.3)))
      image.fill(
        PixelRect(x: rulerX..<rulerX + length, y: y..<y + lineWidth), luma: Self.ink)
      guard isLong, isLabelled else { continue }
      let text = ["0.5 m", "1.0 m", "1.5 m"][tenth / 5 - 1]
      // Labels are centered on their lines, except the highest label, which has no space above it.
      let labelY = max(geometry.top + 2 * scale, y - DotFont.height * scale / 2)
      image.draw(
        text, x: rulerX + length + 3 * scale, y: labelY, scale: scale, luma: Self.ink)
    }
  }

  /// Draws a dashed line at the height that the lower edge of the ball reaches at its highest
  /// position.
  private func drawMark(_ image: inout SceneImage) {
    let y = geometry.row(atHeight: ball.height.doubleValue)
    let reach = Int(geometry.ballRadius * 2)
    let dash = max(2, Int(geometry.ballRadius / 4))
    for x in stride(from: Int(geometry.ballX) - reach, to: rulerX, by: 2 * dash) {
      image.fill(PixelRect(x: x..<min(rulerX, x + dash), y: y..<y + lineWidth), Self.mark)
    }
  }

  private func drawStopWatch(_ image: inout SceneImage) {
    image.fill(stopWatch.panel, StopWatchLayout.paper)
    for index in [2, 5] {
      image.draw(
        StopWatchText(milliseconds: 0)[index], x: stopWatch.x(ofCharacter: index),
        y: stopWatch.textY, scale: stopWatch.scale, luma: StopWatchLayout.ink)
    }
    let scale = stopWatch.scale / 2
    let y = stopWatch.panel.bottom + 4 * scale
    guard scale > 0, y + 18 * scale < geometry.ground else { return }
    image.draw(
      "h = \(Self.thousandths(ball.height)) m", x: stopWatch.panel.x, y: y,
      scale: scale, luma: Self.ink)
    image.draw(
      "T = \(Self.thousandths(ball.period)) s", x: stopWatch.panel.x,
      y: y + 10 * scale, scale: scale, luma: Self.ink)
  }

  /// Formats a number with three decimals.
  private static func thousandths(_ number: Rational) -> String {
    let whole = Int((try? (number * 1_000).rounded(.halfAwayFromZero)) ?? 0)
    let digits = String(1_000 + whole % 1_000).dropFirst()
    return "\(whole / 1_000).\(digits)"
  }
}
