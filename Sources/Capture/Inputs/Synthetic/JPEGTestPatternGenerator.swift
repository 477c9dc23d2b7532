// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// Frames of MJPEG, put together from pieces instead of encoded as a whole.
///
/// A JPEG may restart its coder after each row of blocks (ITU-T T.81, DRI and RSTm), and a row
/// that was encoded by itself is then exactly what stands between two restarts. So the pattern
/// is encoded once, and of each frame only the rows that carry its number: a 240 fps camera
/// costs some percent of a core, as a real one does.
struct JPEGTestPatternGenerator: TestPatternGenerator {
  private let pattern: TestPattern
  private var encoder: JPEGRowEncoder
  /// Everything before the first row's data.
  private let header: [UInt8]
  /// The pattern's rows of 16 pixels: first by the pixels they are shifted, then by place.
  private let patternRows: [[[UInt8]]]
  private let rowCount: Int
  private let numberRowCount: Int
  let maximumByteCount: Int

  private static let rowHeight = 16

  init(pattern: TestPattern) throws(LibAVError) {
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
    // Rows of numbers are sharper than the pattern: room for four times its longest row.
    maximumByteCount = header.count + rowCount * (longest * 4 + 4_096) + 64
  }

  mutating func make(
    number: Int, isFlash: Bool, into buffer: UnsafeMutableRawBufferPointer
  ) throws(LibAVError) -> Int {
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
      // RST0 ... RST7 in turn after each row but the last, which the end marker follows.
      writer.append(index == rowCount - 1 ? [0xFF, 0xD9] : [0xFF, 0xD0 + UInt8(index % 8)])
    }
    guard !writer.isOverfull else {
      throw LibAVError("draw", "a picture of \(buffer.count) bytes", code: -28)
    }
    return writer.count
  }
}
