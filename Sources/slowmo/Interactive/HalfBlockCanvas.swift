// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// An image on a terminal.
///
/// Each cell shows two pixels by the character for an upper half block.
///
/// Only changed cells are written, in one update that the terminal shows at once.
struct HalfBlockCanvas {
  /// The number of columns of the terminal.
  private(set) var columns = 0
  /// The number of rows of the terminal, including the line of text below the image.
  private(set) var rows = 0
  /// The colors that each cell of the terminal shows: the upper and the lower color, 24 bits each.
  private var cells: [UInt64] = []
  private var text = ""
  private var isBlank = false

  /// The value of a cell if its content on the terminal is unknown.
  private static let unknown = UInt64.max

  /// The width of the image area in pixels.
  var pixelWidth: Int { columns }
  /// The height of the image area in pixels.
  var pixelHeight: Int { max(0, rows - 1) * 2 }

  /// Sets the size of the terminal.
  ///
  /// After a change, the next draw writes all cells again.
  mutating func resize(columns: Int, rows: Int) {
    guard columns != self.columns || rows != self.rows else { return }
    (self.columns, self.rows) = (max(0, columns), max(0, rows))
    forget()
  }

  /// Makes the next draw write all cells again, because the terminal shows something else.
  mutating func forget() {
    cells = Array(repeating: Self.unknown, count: columns * max(0, rows - 1))
    text = ""
    isBlank = true
  }

  /// Draws an image and a line of text.
  ///
  /// - Parameters:
  ///   - image: A BGRA image, or nil for an empty area.
  ///   - area: The rectangle that the whole image fills, in pixels of the image area.
  ///   - line: The text for the last row, without control characters.
  /// - Returns: The bytes for the terminal.
  mutating func draw(_ image: PixelBuffer?, in area: Rect, line: String) -> [UInt8] {
    var output = TerminalText()
    output.add("\u{1B}[?2026h")
    if isBlank { output.add("\u{1B}[0m\u{1B}[2J") }
    isBlank = false
    if let image, image.format == .bgra {
      image.withUnsafeBytes(ofPlane: 0) { bytes in
        let sampler = Sampler(bytes: bytes, width: image.width, height: image.height, area: area)
        drawCells(&output) { sampler.color($0, $1) }
      }
    } else {
      drawCells(&output) { _, _ in 0 }
    }
    let shown = String(line.unicodeScalars.prefix(columns).map(Character.init))
    if shown != text {
      output.add("\u{1B}[0m\u{1B}[\(rows);1H\(shown)\u{1B}[K")
      text = shown
    }
    output.add("\u{1B}[0m\u{1B}[?2026l")
    return output.bytes
  }

  private mutating func drawCells(
    _ output: inout TerminalText, _ color: (_ x: Int, _ y: Int) -> UInt32
  ) {
    for row in 0..<max(0, rows - 1) {
      // The cell at which the terminal would write next; -1 if unknown.
      var cursor = -1
      for column in 0..<columns {
        let upper = UInt64(color(column, row * 2))
        let colors = upper << 32 | UInt64(color(column, row * 2 + 1))
        guard cells[row * columns + column] != colors else { continue }
        cells[row * columns + column] = colors
        if cursor != column { output.add("\u{1B}[\(row + 1);\(column + 1)H") }
        output.add(upper: UInt32(upper), lower: UInt32(truncatingIfNeeded: colors))
        cursor = column + 1
      }
    }
  }

  /// Samples the color of an image at a pixel of the image area.
  private struct Sampler {
    let bytes: UnsafeRawBufferPointer
    let width: Int
    let height: Int
    let area: Rect

    /// Returns the color reduced to 5 bits per channel, as 0xRRGGBB.
    ///
    /// With fewer colors, more cells are unchanged from frame to frame.
    func color(_ x: Int, _ y: Int) -> UInt32 {
      let column = (Double(x) + 0.5 - area.x) / area.width
      let row = (Double(y) + 0.5 - area.y) / area.height
      guard (0..<1).contains(column), (0..<1).contains(row) else { return 0 }
      let offset = (Int(row * Double(height)) * width + Int(column * Double(width))) * 4
      guard offset + 2 < bytes.count else { return 0 }
      func reduced(_ value: UInt8) -> UInt32 { UInt32(value & 0xF8 | value >> 5) }
      return reduced(bytes[offset + 2]) << 16 | reduced(bytes[offset + 1]) << 8
        | reduced(bytes[offset])
    }
  }
}

/// Output for a terminal that repeats no color that is already set.
private struct TerminalText {
  private(set) var bytes: [UInt8] = []
  private var upper: UInt32?
  private var lower: UInt32?

  /// Adds text, such as control sequences.
  mutating func add(_ text: String) { bytes += Array(text.utf8) }

  /// Adds a cell with an upper and a lower color.
  mutating func add(upper: UInt32, lower: UInt32) {
    if upper != self.upper { color(38, upper) }
    if lower != self.lower { color(48, lower) }
    (self.upper, self.lower) = (upper, lower)
    bytes += [0xE2, 0x96, 0x80]
  }

  private mutating func color(_ code: Int, _ color: UInt32) {
    add("\u{1B}[\(code);2;\(color >> 16);\(color >> 8 & 0xFF);\(color & 0xFF)m")
  }
}
