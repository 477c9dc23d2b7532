// SPDX-License-Identifier: Apache-2.0

/// A pattern that moves, with the frame number on top: what the synthetic camera shows with
/// `scene=pattern`.
///
/// From the top: the cells of ``FrameNumberPattern``, a band with the number in figures (white on
/// black, inverted in the first frame of each second), and a diagonal pattern that moves two
/// pixels up with every frame.
struct TestPattern: Sendable {
  let width: Int
  let height: Int
  private let layout: FrameNumberPattern.Layout

  /// Pixels by which the pattern moves from frame to frame.
  static let step = 2
  /// After this many pixels up or down the pattern repeats.
  static let period = 256
  /// The height of the band of figures.
  static let figureBandHeight = 32
  /// Pixels from the left, and from the top of the band, to the first figure.
  static let figureLeft = 8
  static let figureTop = 2

  /// The pixels of a dot of a figure.
  static func figureScale(width: Int) -> Int { width >= 200 ? 4 : 2 }

  init(width: Int, height: Int) {
    self.width = width
    self.height = height
    layout = FrameNumberPattern.Layout(width: width)
  }

  /// Pixels from the top that change with the number; a multiple of 16.
  var numberHeight: Int { layout.height + Self.figureBandHeight }

  /// Draws one row of brightness of the part that carries the number.
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
    // The place of the highest figure, and then of each below it.
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

  /// The brightness of the pattern at a column and a row of the endless pattern.
  static func pattern(x: Int, y: Int) -> UInt8 {
    let diagonal = (x + y) & 127
    let ramp = diagonal < 64 ? diagonal : 127 - diagonal
    let block = ((x >> 5) ^ (y >> 5)) & 1 == 0 ? 0 : 48
    return UInt8(48 + ramp * 2 + block)
  }

  /// The row of the endless pattern that frame `number` shows at row 0.
  static func offset(number: Int) -> Int { number % (period / step) * step }

  // Video range and full range both tell these from grey.
  static let black: UInt8 = 16
  static let white: UInt8 = 235
}
