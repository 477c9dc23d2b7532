// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// The moving pattern of the synthetic camera with `scene=pattern`, with the frame number at the
/// top.
///
/// From the top: the cells of ``FrameNumberPattern``, a band with the number in digits (white on
/// black, inverted in the first frame of each second), and a diagonal pattern that moves two pixels
/// up with every frame.
package struct TestPattern: Sendable {
  let width: Int
  let height: Int
  private let layout: FrameNumberPattern.Layout

  /// The number of pixels that the pattern moves up from frame to frame.
  static let step = 2
  /// The height in pixels after which the pattern repeats.
  static let period = 256
  /// The height of the band with the digits, in pixels.
  static let figureBandHeight = 32
  /// The distance of the first digit from the left edge of the image, in pixels.
  static let figureLeft = 8
  static let figureTop = 2

  /// The width and height of a dot of a digit, in pixels.
  static func figureScale(width: Int) -> Int { width >= 200 ? 4 : 2 }

  package init(width: Int, height: Int) {
    (self.width, self.height) = (width, height)
    layout = FrameNumberPattern.Layout(width: width)
  }

  /// The height of the part that contains the frame number, in pixels.
  ///
  /// It is a multiple of 16.
  var numberHeight: Int { layout.height + Self.figureBandHeight }

  /// Draws one row of luma in the part that contains the frame number.
  func drawNumberRow(
    y: Int, number: Int, isFlash: Bool, into row: UnsafeMutablePointer<UInt8>
  ) {
    guard y >= layout.height else {
      for x in 0..<width {
        row[x] =
          FrameNumberPattern.isWhite(x: x, y: y, number: number, layout: layout)
          ? Self.white : Self.black
      }
      return
    }
    let painted = number % FrameNumberPattern.limit
    let paper = isFlash ? Self.white : Self.black
    let ink = isFlash ? Self.black : Self.white
    row.update(repeating: paper, count: width)
    let scale = Self.figureScale(width: width)
    let line = (y - layout.height - Self.figureTop) / scale
    guard y - layout.height >= Self.figureTop, line < DotFont.height else { return }
    var x = Self.figureLeft
    // `divisor` is the value of a decimal place: first that of the highest digit, such as 100 for
    // 240.
    var divisor = 1
    while painted / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      let dots = DotFont.dots(of: DotFont.digit(painted / divisor), line: line)
      divisor /= 10
      for column in 0..<DotFont.width {
        if dots >> UInt64(DotFont.width - 1 - column) & 1 == 1 {
          for pixel in x..<min(width, x + scale) { row[pixel] = ink }
        }
        x += scale
        if x >= width { return }
      }
      x += scale
      if x >= width { return }
    }
  }

  /// The luma of the pattern at a column and a row.
  ///
  /// The pattern continues endlessly in both directions.
  static func pattern(x: Int, y: Int) -> UInt8 {
    let diagonal = (x + y) & 127
    let ramp = diagonal < 64 ? diagonal : 127 - diagonal
    let block = ((x >> 5) ^ (y >> 5)) & 1 == 0 ? 0 : 48
    return UInt8(48 + ramp * 2 + block)
  }

  /// The row of the endless pattern that is at row 0 of the image in frame `number`.
  static func offset(number: Int) -> Int { number % (period / step) * step }

  // Black and white of video range. They are also clearly dark and bright if a program interprets
  // the luma as full range.
  static let black: UInt8 = 16
  static let white: UInt8 = 235
}
