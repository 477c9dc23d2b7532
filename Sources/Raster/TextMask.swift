// SPDX-License-Identifier: Apache-2.0

/// The shape of a line of text: how much of each pixel it covers.
///
/// Sizes are multiples of a scale. Capital letters are about 7 times the scale high, and characters
/// of a fixed-width font are 6 times the scale apart.
package struct TextMask: Hashable, Sendable {
  /// The distance from one character of a fixed-width font to the next, at scale 1.
  package static let advance = 6
  /// The height of capital letters, at scale 1.
  package static let capHeight = 7
  /// The number of rows above the capital letters, at scale 1, for accents and tall scripts.
  package static let overhang = 3
  /// The number of rows of a mask, at scale 1: also those of letters below the baseline.
  package static let rows = 14

  package let width: Int
  package let height: Int
  /// The coverage of each pixel, row by row, from 0 to 255.
  package private(set) var coverage: [UInt8]

  /// Creates a mask without a covered pixel.
  package init(width: Int, scale: Int) {
    (self.width, height) = (width, Self.rows * scale)
    coverage = [UInt8](repeating: 0, count: width * height)
  }

  /// Creates the mask of a text in ``DotFont``.
  ///
  /// A character that the font lacks is drawn as a question mark.
  package init(dots text: some Sequence<Unicode.Scalar>, scale: Int) {
    let codes = text.map { DotFont.contains($0) ? UInt8($0.value) : UInt8(ascii: "?") }
    self.init(width: codes.count * Self.advance * scale, scale: scale)
    for (index, code) in codes.enumerated() {
      DotFont.forEachRectangle(
        of: code, x: index * Self.advance * scale, y: Self.overhang * scale, scale: scale
      ) { dots in
        for y in dots.rows { for x in dots.columns { coverage[y * width + x] = 255 } }
      }
    }
  }

  /// Creates a mask of the columns of another one, or of an image with one byte of coverage in
  /// `bytesPerPixel` bytes.
  ///
  /// - Precondition: Each of the mask's rows has pixels in the image.
  package init(
    columns: Range<Int>, of image: UnsafePointer<UInt8>, bytesPerRow: Int, bytesPerPixel: Int,
    scale: Int
  ) {
    self.init(width: columns.count, scale: scale)
    for y in 0..<height {
      let row = image + y * bytesPerRow + columns.lowerBound * bytesPerPixel
      for x in 0..<width { coverage[y * width + x] = row[x * bytesPerPixel] }
    }
  }

  /// Copies another mask of the same height to a column, as far as it fits.
  package mutating func draw(_ other: TextMask, x: Int) {
    let count = max(0, min(other.width, width - x))
    for y in 0..<min(height, other.height) {
      for column in 0..<count {
        coverage[y * width + x + column] = other.coverage[y * other.width + column]
      }
    }
  }

  /// The smallest rectangle of the mask with all covered pixels; nil for a blank mask.
  package var coveredArea: PixelRect? {
    var (columns, rows): (Range<Int>?, Range<Int>?)
    for y in 0..<height {
      let row = coverage[y * width..<(y + 1) * width]
      guard let first = row.firstIndex(where: { $0 > 0 }),
        let last = row.lastIndex(where: { $0 > 0 })
      else { continue }
      let (left, right) = (first - row.startIndex, last - row.startIndex + 1)
      columns = min(columns?.lowerBound ?? left, left)..<max(columns?.upperBound ?? right, right)
      rows = (rows?.lowerBound ?? y)..<y + 1
    }
    guard let columns, let rows else { return nil }
    return PixelRect(x: columns, y: rows)
  }

  /// Calls a closure with each pixel that is covered, and its coverage.
  ///
  /// `x` and `y` are the upper left corner of the capital letters.
  package func forEachPixel(
    x: Int, y: Int, _ body: (_ x: Int, _ y: Int, _ coverage: UInt8) -> Void
  ) {
    let top = y - height / Self.rows * Self.overhang
    for (index, coverage) in coverage.enumerated() where coverage > 0 {
      body(x + index % width, top + index / width, coverage)
    }
  }

  /// The pixels of which at least the half is covered, as rectangles of one row.
  ///
  /// `x` and `y` are the upper left corner of the capital letters.
  package func rectangles(x: Int, y: Int) -> [PixelRect] {
    var result: [PixelRect] = []
    forEachPixel(x: x, y: y) { x, y, coverage in
      guard coverage >= 128 else { return }
      if let last = result.last, last.y == y, last.right == x {
        result[result.count - 1].width += 1
      } else {
        result.append(PixelRect(x: x, y: y, width: 1, height: 1))
      }
    }
    return result
  }
}
