// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankMediaCore
import OvercrankRaster

/// A bouncing ball in front of a ruler, with a stop-watch and the frame number at the top.
///
/// The frame number looks as in ``TestPattern``. Each frame redraws only the parts of the image
/// that differ from the previous frame, and ``changed`` lists them. The image of a frame does not
/// depend on which frames were drawn before it.
struct BallScene: Sendable {
  let ball: BouncingBall
  let frameRate: FrameRate
  let geometry: SceneGeometry
  let stopWatch: StopWatchLayout
  /// The scene without the ball, its shadow, the characters of the stop-watch and the frame number.
  let background: SceneImage
  /// The most recently drawn frame.
  private(set) var image: SceneImage
  /// The parts of the image that may differ from the previous frame.
  ///
  /// For the first frame, the parts that may differ from the background.
  private(set) var changed: [PixelRect] = []

  private let layout: FrameNumberPattern.Layout
  private let shadow: BallShadow
  private var isBlank = true
  private var drawnNumber = 0
  private var drawnFlash = false
  private var drawnTime = StopWatchText(milliseconds: 0)
  private var drawnBall: PixelRect
  private var drawnShade = -1

  init(width: Int, height: Int, ball: BouncingBall, frameRate: FrameRate) {
    (self.ball, self.frameRate) = (ball, frameRate)
    geometry = SceneGeometry(width: width, height: height)
    layout = FrameNumberPattern.Layout(width: width)
    stopWatch = StopWatchLayout(width: width, geometry: geometry)
    background = SceneBackground(
      width: width, height: height, ball: ball, geometry: geometry, stopWatch: stopWatch
    ).image()
    image = background
    shadow = BallShadow(in: geometry.shadowRect(height: height))
    drawnBall = geometry.ballRect(y: geometry.ballY(atHeight: 0))
    changed.reserveCapacity(128)
  }

  /// Draws a frame.
  mutating func draw(number: Int, isFlash: Bool) {
    changed.removeAll(keepingCapacity: true)
    let painted = number % FrameNumberPattern.limit
    drawCells(painted)
    drawFigures(painted, isFlash: isFlash)
    let time = Rational(Int64(number)) / frameRate.framesPerSecond
    drawStopWatch(at: time)
    let height = ball.height(at: time).doubleValue
    drawShadow(height: height)
    drawBall(height: height)
    drawnNumber = painted
    drawnFlash = isFlash
    isBlank = false
  }

  /// All parts of the image that differ from the background in at least one frame of the scene.
  var reach: [PixelRect] {
    let highest = geometry.ballRect(y: geometry.ballY(atHeight: ball.height.doubleValue))
    let lowest = geometry.ballRect(y: geometry.ballY(atHeight: 0))
    return [
      PixelRect(x: 0..<image.width, y: 0..<geometry.top), stopWatch.panel, shadow.rect,
      PixelRect(x: highest.columns, y: highest.y..<lowest.bottom),
    ]
  }

  private mutating func fill(_ rect: PixelRect, luma: UInt8) {
    image.fill(rect, luma: luma)
    changed.append(rect)
  }

  /// Redraws the cells of the frame number whose bit changed.
  private mutating func drawCells(_ number: Int) {
    let bits = FrameNumberPattern.bits(of: number)
    let different: UInt32 = isBlank ? .max : bits ^ FrameNumberPattern.bits(of: drawnNumber)
    for cell in 0..<FrameNumberPattern.cellCount {
      let shift = FrameNumberPattern.cellCount - 1 - cell
      guard different >> shift & 1 == 1 else { continue }
      fill(
        layout.rect(ofCell: cell, width: image.width),
        luma: bits >> shift & 1 == 1 ? TestPattern.white : TestPattern.black)
    }
  }

  /// Redraws the digits of the frame number that changed.
  ///
  /// If the number of digits or the color of the band behind them changed, the whole band is
  /// redrawn.
  private mutating func drawFigures(_ number: Int, isFlash: Bool) {
    let paper = isFlash ? TestPattern.white : TestPattern.black
    let ink = isFlash ? TestPattern.black : TestPattern.white
    let scale = TestPattern.figureScale(width: image.width)
    var place = 1
    while number / place >= 10 { place *= 10 }
    // `place` is the decimal place value of the highest digit, such as 100 for 240. The previous
    // number has more digits if it is at least ten times `place`, and fewer digits if it is below
    // `place`.
    let isNew =
      isBlank || isFlash != drawnFlash || drawnNumber / place >= 10
      || (place > 1 && drawnNumber / place == 0)
    if isNew {
      fill(PixelRect(x: 0..<image.width, y: layout.height..<geometry.top), luma: paper)
    }
    var x = TestPattern.figureLeft
    let y = layout.height + TestPattern.figureTop
    while place > 0, x < image.width {
      let figure = DotFont.digit(number / place)
      if isNew || figure != DotFont.digit(drawnNumber / place) {
        fill(
          PixelRect(x: x..<x + DotFont.width * scale, y: y..<y + DotFont.height * scale),
          luma: paper)
        image.draw(figure, x: x, y: y, scale: scale, luma: ink)
      }
      x += (DotFont.width + 1) * scale
      place /= 10
    }
  }

  /// Draws the characters of the stop-watch that changed.
  private mutating func drawStopWatch(at time: Rational) {
    let whole = (try? (time * 1_000).rounded(.towardNegativeInfinity)) ?? 0
    let text = StopWatchText(milliseconds: Int(whole % StopWatchText.period))
    for index in 0..<StopWatchText.count
    where isBlank || text[index] != drawnTime[index] {
      fill(stopWatch.rect(ofCharacter: index), luma: StopWatchLayout.paper.luma)
      image.draw(
        text[index], x: stopWatch.x(ofCharacter: index), y: stopWatch.textY,
        scale: stopWatch.scale, luma: StopWatchLayout.ink)
    }
    drawnTime = text
  }

  /// Draws the shadow, which is darker the lower the ball is.
  private mutating func drawShadow(height: Double) {
    let shade = shadow.shade(height: height)
    guard shade != drawnShade else { return }
    drawnShade = shade
    shadow.draw(shade, on: background, into: &image)
    changed.append(shadow.rect)
  }

  private mutating func drawBall(height: Double) {
    let y = geometry.ballY(atHeight: height)
    let rect = geometry.ballRect(y: y)
    image.copy(drawnBall, from: background)
    BallSprite(radius: geometry.ballRadius, x: geometry.ballX, y: y).draw(in: rect, into: &image)
    if rect.rows.overlaps(drawnBall.rows) {
      let y = min(rect.y, drawnBall.y)
      changed.append(
        PixelRect(x: rect.columns, y: y..<max(rect.bottom, drawnBall.bottom)))
    } else {
      changed.append(drawnBall)
      changed.append(rect)
    }
    drawnBall = rect
  }
}
