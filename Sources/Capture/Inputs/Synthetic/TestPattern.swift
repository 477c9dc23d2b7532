// SPDX-License-Identifier: Apache-2.0

/// What the synthetic camera sees: a pattern that moves, with the frame number on top.
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
    let paper = isFlash ? Self.white : Self.black
    let ink = isFlash ? Self.black : Self.white
    row.update(repeating: paper, count: width)
    let scale = width >= 200 ? 4 : 2
    let line = (y - layout.height - 2) / scale
    guard y - layout.height >= 2, line < Figures.height else { return }
    var x = 8
    // The place of the highest figure, and then of each below it.
    var place = 1
    while number / place >= 10 { place *= 10 }
    while place > 0 {
      let dots = Figures.dots(of: number / place % 10, line: line)
      place /= 10
      for column in 0..<Figures.width {
        if dots >> (Figures.width - 1 - column) & 1 == 1 {
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

/// Ten figures of 5 by 7 dots.
private enum Figures {
  static let width = 5
  static let height = 7

  /// The dots of one line of a figure, the leftmost in the highest of five bits.
  ///
  /// Not a table: that is a global made at its first use, and Linux takes a lock for each look at
  /// one, at which the real-time threads of several cameras queue up.
  static func dots(of figure: Int, line: Int) -> UInt64 {
    let lines: UInt64 =
      switch figure {
      case 0: 0b01110_10001_10011_10101_11001_10001_01110
      case 1: 0b00100_01100_00100_00100_00100_00100_01110
      case 2: 0b01110_10001_00001_00110_01000_10000_11111
      case 3: 0b11111_00010_00100_00010_00001_10001_01110
      case 4: 0b00010_00110_01010_10010_11111_00010_00010
      case 5: 0b11111_10000_11110_00001_00001_10001_01110
      case 6: 0b00110_01000_10000_11110_10001_10001_01110
      case 7: 0b11111_00001_00010_00100_01000_01000_01000
      case 8: 0b01110_10001_10001_01110_10001_10001_01110
      default: 0b01110_10001_10001_01111_00001_00010_01100
      }
    return lines >> UInt64(width * (height - 1 - line)) & 0b11111
  }
}
