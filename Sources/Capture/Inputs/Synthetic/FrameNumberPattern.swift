// SPDX-License-Identifier: Apache-2.0

/// The frame number that the synthetic camera paints into each picture.
///
/// Thirty-two black or white cells along the top: 26 bits of the number, highest first, then 6
/// bits of a check value. A cell is wide enough to survive JPEG and H.264, and whoever reads a
/// damaged or foreign picture gets nil instead of a wrong number.
package enum FrameNumberPattern {
  /// The first number that does not fit; painting goes on from zero there.
  package static let limit = 1 << 26
  /// The height of a row of cells: one row of JPEG's blocks.
  static let rowHeight = 16
  private static let cellCount = 32

  /// Where the cells lie in a picture of some width.
  struct Layout {
    let cellsPerRow: Int
    let cellWidth: Int
    /// Pixels from the top that the cells take.
    var height: Int { (cellCount + cellsPerRow - 1) / cellsPerRow * rowHeight }
    private var cellCount: Int { FrameNumberPattern.cellCount }

    init(width: Int) {
      cellsPerRow = max(1, min(FrameNumberPattern.cellCount, width / 8))
      cellWidth = max(1, width / cellsPerRow)
    }
  }

  /// Whether the cell at a place is white, for the number `number`.
  static func isWhite(x: Int, y: Int, number: Int, layout: Layout) -> Bool {
    let column = min(x / layout.cellWidth, layout.cellsPerRow - 1)
    let cell = y / rowHeight * layout.cellsPerRow + column
    guard cell < cellCount else { return false }
    return bits(of: number) >> (cellCount - 1 - cell) & 1 == 1
  }

  /// Reads the number back out of a picture's brightness.
  ///
  /// - Parameters:
  ///   - width: Pixels from left to right.
  ///   - height: Pixels from top to bottom.
  ///   - luma: The brightness of a pixel by column and row, 0 ... 255.
  /// - Returns: The number, or nil where no number is painted or the picture is too damaged.
  package static func read(
    width: Int, height: Int, luma: (_ x: Int, _ y: Int) -> UInt8
  ) -> Int? {
    let layout = Layout(width: width)
    guard height >= layout.height else { return nil }
    var bits: UInt32 = 0
    for cell in 0..<cellCount {
      let left = cell % layout.cellsPerRow * layout.cellWidth
      let top = cell / layout.cellsPerRow * rowHeight
      // The middle of the cell, away from the ringing at its edges.
      let columns = (left + layout.cellWidth / 4)..<(left + max(1, layout.cellWidth * 3 / 4))
      let rows = (top + 5)..<(top + 11)
      var sum = 0
      for y in rows { for x in columns { sum += Int(luma(x, y)) } }
      let mean = sum / (columns.count * rows.count)
      // Grey is neither black nor white: then this is not our picture.
      guard !(96..<160).contains(mean) else { return nil }
      bits = bits << 1 | (mean >= 160 ? 1 : 0)
    }
    let number = Int(bits >> 6)
    return self.bits(of: number) == bits ? number : nil
  }

  private static func bits(of number: Int) -> UInt32 {
    let value = UInt32(truncatingIfNeeded: number) % UInt32(limit)
    // Never all zero nor all one, so that black and white pictures carry no number.
    return value << 6 | (value % 61 + 1)
  }
}
