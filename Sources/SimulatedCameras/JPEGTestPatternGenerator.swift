// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
package import OvercrankMediaCore

/// Generates the test pattern as MJPEG from rows that were encoded before.
///
/// A restart marker follows each row of blocks (ITU-T T.81, DRI and RSTm), so the bytes of a row do
/// not depend on other rows. The rows of the moving pattern are therefore encoded once. For each
/// frame only the rows with the frame number are encoded, so a 240 fps camera uses only a few
/// percent of a core.
package struct JPEGTestPatternGenerator: TestPatternGenerator {
  private let pattern: TestPattern
  private var encoder: JPEGRowEncoder
  /// The JPEG header: all bytes before the data of the first row of blocks.
  private let header: [UInt8]
  /// The encoded rows of the pattern, each 16 pixels high.
  ///
  /// The pattern moves up by 2 pixels per frame, so rows exist for 8 vertical shifts from 0 to 14
  /// pixels. The first index is half the shift. The second index is the number of the row in the
  /// pattern.
  private let patternRows: [[[UInt8]]]
  private let rowCount: Int
  private let numberRowCount: Int
  package let maximumByteCount: Int

  private static let rowHeight = 16

  package init(pattern: TestPattern) throws(CallFailure) {
    self.pattern = pattern
    rowCount = (pattern.height + Self.rowHeight - 1) / Self.rowHeight
    numberRowCount = pattern.numberHeight / Self.rowHeight
    var encoder = try JPEGRowEncoder(width: pattern.width, height: Self.rowHeight)
    var rows: [[[UInt8]]] = []
    var header: [UInt8] = []
    for shift in stride(from: 0, to: Self.rowHeight, by: TestPattern.step) {
      var shifted: [[UInt8]] = []
      for position in 0..<(TestPattern.period / Self.rowHeight) {
        let jpeg = try encoder.encode { y, row in
          for x in 0..<pattern.width {
            row[x] = TestPattern.pattern(x: x, y: position * Self.rowHeight + shift + y)
          }
        }
        let parts = try JPEGParts(jpeg)
        if header.isEmpty {
          header = parts.header(width: pattern.width, height: pattern.height)
        }
        shifted.append(parts.data)
      }
      rows.append(shifted)
    }
    self.header = header
    patternRows = rows
    self.encoder = encoder
    let longest = rows.joined().map(\.count).max() ?? 0
    // The rows with the frame number have sharper edges than the pattern and need more bytes. Four
    // times the longest row of the pattern is enough.
    maximumByteCount = header.count + rowCount * (longest * 4 + 4_096) + 64
  }

  package mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) throws(CallFailure) -> Int {
    var writer = ByteWriter(buffer)
    writer.append(header)
    let offset = TestPattern.offset(number: number)
    let shifted = patternRows[offset % Self.rowHeight / TestPattern.step]
    for index in 0..<rowCount {
      if index < numberRowCount {
        let pattern = pattern
        let jpeg = try encoder.encode { y, row in
          pattern.drawNumberRow(
            y: index * Self.rowHeight + y, number: number, isFlash: isFlash, into: row)
        }
        writer.append(try JPEGParts(jpeg).data)
      } else {
        writer.append(shifted[(index + offset / Self.rowHeight) % shifted.count])
      }
      // The markers RST0 to RST7 follow the rows in turn. EOI follows the last row.
      writer.append(index == rowCount - 1 ? [0xFF, 0xD9] : [0xFF, 0xD0 + UInt8(index % 8)])
    }
    guard !writer.isOverfull else {
      throw CallFailure("draw", "an image of \(buffer.count) bytes", code: -28)
    }
    return writer.count
  }
}
