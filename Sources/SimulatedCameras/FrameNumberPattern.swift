// SPDX-License-Identifier: Apache-2.0

import OvercrankRaster

/// The machine-readable frame number in each image of the synthetic camera.
///
/// The pattern has 32 black or white cells along the top edge. They encode 26 bits of the number,
/// most significant first, and a 6-bit check value. Cells are wide enough to survive JPEG and
/// H.264. If an image is damaged, or comes from another camera, the check value does not match and
/// no number is read.
package enum FrameNumberPattern {
  /// The number of different frame numbers, after which the pattern starts again at zero.
  package static let limit = 1 << 26
  /// The height of a row of cells in pixels, equal to the height of a JPEG macroblock.
  static let rowHeight = 16
  static let cellCount = 32

  /// The arrangement of the cells in an image of a given width.
  struct Layout {
    let cellsPerRow: Int
    let cellWidth: Int
    /// The total height of all rows of cells, in pixels from the top edge.
    var height: Int { (cellCount + cellsPerRow - 1) / cellsPerRow * rowHeight }
    private var cellCount: Int { FrameNumberPattern.cellCount }

    init(width: Int) {
      cellsPerRow = max(1, min(FrameNumberPattern.cellCount, width / 8))
      cellWidth = max(1, width / cellsPerRow)
    }

    /// The rectangle of a cell.
    ///
    /// The last cell of a row extends to the right edge of the image.
    func rect(ofCell cell: Int, width: Int) -> PixelRect {
      let (row, column) = (cell / cellsPerRow, cell % cellsPerRow)
      let right = column == cellsPerRow - 1 ? width : (column + 1) * cellWidth
      return PixelRect(
        x: column * cellWidth..<right, y: row * rowHeight..<(row + 1) * rowHeight)
    }
  }

  /// Whether the pixel lies in a cell that is white for this frame number.
  static func isWhite(x: Int, y: Int, number: Int, layout: Layout) -> Bool {
    let column = min(x / layout.cellWidth, layout.cellsPerRow - 1)
    let cell = y / rowHeight * layout.cellsPerRow + column
    guard cell < cellCount else { return false }
    return bits(of: number) >> (cellCount - 1 - cell) & 1 == 1
  }

  /// Decodes the frame number from the luma of an image.
  ///
  /// - Parameters:
  ///   - width: The image width in pixels.
  ///   - height: The image height in pixels.
  ///   - luma: The luma of the pixel in a column and a row, from 0 to 255.
  /// - Returns: The number, or nil if the image shows no frame number or is too damaged.
  package static func read(
    width: Int, height: Int, luma: (_ x: Int, _ y: Int) -> UInt8
  ) -> Int? {
    let layout = Layout(width: width)
    guard height >= layout.height else { return nil }
    var bits: UInt32 = 0
    for cell in 0..<cellCount {
      let left = cell % layout.cellsPerRow * layout.cellWidth
      let top = cell / layout.cellsPerRow * rowHeight
      // Only the middle of a cell is read, to avoid compression artifacts at its edges.
      let columns = (left + layout.cellWidth / 4)..<(left + max(1, layout.cellWidth * 3 / 4))
      let rows = (top + 5)..<(top + 11)
      var sum = 0
      for y in rows { for x in columns { sum += Int(luma(x, y)) } }
      let mean = sum / (columns.count * rows.count)
      // The cells of a frame number are black or white. A gray cell means that the image shows no
      // frame number, or that the number is damaged.
      guard !(96..<160).contains(mean) else { return nil }
      bits = bits << 1 | (mean >= 160 ? 1 : 0)
    }
    let number = Int(bits >> 6)
    return self.bits(of: number) == bits ? number : nil
  }

  /// The bits of the cells.
  ///
  /// The first cell is the highest bit, and a 1 is a white cell.
  static func bits(of number: Int) -> UInt32 {
    let value = UInt32(truncatingIfNeeded: number) % UInt32(limit)
    // The check value is never 0 or 63, so the 32 bits are never all equal. A fully black or white
    // image, whose cells are all equal, is therefore never mistaken for a frame number.
    return value << 6 | (value % 61 + 1)
  }
}
