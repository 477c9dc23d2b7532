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
  private var encoder: RowEncoder
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
    var encoder = try RowEncoder(width: pattern.width, height: Self.rowHeight)
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

/// Encodes single rows of blocks as small JPEG files of their own.
private struct RowEncoder {
  /// A copyable place for the encoder, which is not.
  ///
  /// Sendable because the maker that holds it is used by one thread only: the driver's.
  private final class Box: @unchecked Sendable {
    var encoder: Encoder
    init(_ encoder: consuming Encoder) { self.encoder = encoder }
  }
  private let box: Box
  private let width: Int
  private let height: Int
  private var ticks: Int64 = 0

  init(width: Int, height: Int) throws(LibAVError) {
    var settings = Encoder.VideoSettings(
      codec: "mjpeg", width: width, height: height, pixelFormat: .yuvj420p, timescale: 1_000)
    settings.isFullRange = true
    settings.quantizer = 3
    settings.threadCount = 1
    // One Huffman table for all rows; libav would otherwise fit one to each.
    settings.options = ["huffman": "default"]
    box = Box(try Encoder(video: settings))
    self.width = width
    self.height = height
  }

  mutating func encode(
    _ draw: (_ y: Int, _ row: UnsafeMutablePointer<UInt8>) -> Void
  ) throws(LibAVError) -> Packet {
    let frame = try MediaFrame.picture(width: width, height: height, pixelFormat: .yuvj420p)
    if let luma = frame.planeData(0) {
      for y in 0..<height { draw(y, luma + y * frame.bytesPerRow(0)) }
    }
    for plane in 1...2 {
      frame.planeData(plane)?.update(
        repeating: 128, count: frame.bytesPerRow(plane) * (height / 2))
    }
    ticks += 1
    try box.encoder.send(frame, at: ticks)
    guard let packet = try box.encoder.nextPacket() else {
      throw LibAVError("encode", "a row of a test picture", code: -22)
    }
    return packet
  }
}

/// A JPEG file taken apart: its tables, and the data between them and the end.
private struct JPEGParts {
  /// Marker segments in order, each with its marker and length: tables, frame and scan header.
  let segments: [[UInt8]]
  let data: [UInt8]

  init(_ packet: Packet) throws(LibAVError) {
    let bytes = packet.withBytes { [UInt8]($0) }
    var segments: [[UInt8]] = []
    var position = 2
    while position + 4 <= bytes.count, bytes[position] == 0xFF {
      let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
      let end = min(bytes.count, position + 2 + length)
      segments.append(Array(bytes[position..<end]))
      let isScan = bytes[position + 1] == 0xDA
      position = end
      if isScan { break }
    }
    guard segments.last?[1] == 0xDA, bytes.count >= position + 2, bytes.suffix(2) == [0xFF, 0xD9]
    else { throw LibAVError("take apart", "a JPEG of \(bytes.count) bytes", code: -22) }
    self.segments = segments
    data = Array(bytes[position..<(bytes.count - 2)])
  }

  /// The header of a picture of another height that restarts after each row of blocks.
  func header(width: Int, height: Int) -> [UInt8] {
    var result: [UInt8] = [0xFF, 0xD8]
    for segment in segments {
      switch segment[1] {
      case 0xDB, 0xC4:  // DQT, DHT
        result += segment
      case 0xC0:  // SOF0: marker, length, precision, height, width, components
        var frame = segment
        frame[5] = UInt8(height >> 8)
        frame[6] = UInt8(height & 0xFF)
        result += frame
      case 0xDA:  // SOS, and before it how many blocks of 16x16 lie between restarts
        let interval = (width + 15) / 16
        result += [0xFF, 0xDD, 0, 4, UInt8(interval >> 8), UInt8(interval & 0xFF)]
        result += segment
      default: break  // Comments and application data.
      }
    }
    return result
  }
}

/// Appends bytes to memory of a fixed size.
private struct ByteWriter {
  private let buffer: UnsafeMutableRawBufferPointer
  private(set) var count = 0
  private(set) var isOverfull = false

  init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

  mutating func append(_ bytes: [UInt8]) {
    guard count + bytes.count <= buffer.count, !isOverfull else {
      isOverfull = true
      return
    }
    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
    bytes.withUnsafeBytes { rest.copyMemory(from: $0) }
    count += bytes.count
  }
}
