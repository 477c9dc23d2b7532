// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankMediaCore

/// The parts of a JPEG file: its marker segments, and the entropy-coded data after them.
struct JPEGParts {
  /// The marker segments in order, each with its marker and length: tables, frame header, scan
  /// header.
  let segments: [[UInt8]]
  let data: [UInt8]

  init(_ packet: Packet) throws(CallFailure) {
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
    else { throw CallFailure("take apart", "a JPEG of \(bytes.count) bytes", code: -22) }
    self.segments = segments
    data = Array(bytes[position..<(bytes.count - 2)])
  }

  /// The JPEG header for an image of the given size, with the tables of this JPEG.
  ///
  /// The header declares a restart marker after each `blocksPerRestart` blocks of 16 by 16 pixels.
  /// The default is one row of blocks.
  func header(width: Int, height: Int, blocksPerRestart: Int? = nil) -> [UInt8] {
    var result: [UInt8] = [0xFF, 0xD8]
    for segment in segments {
      switch segment[1] {
      case 0xDB, 0xC4:  // DQT, DHT
        result += segment
      case 0xC0:  // SOF0: marker, length, precision, height, width, components
        var frame = segment
        frame[5] = UInt8(height >> 8)
        frame[6] = UInt8(height & 0xFF)
        frame[7] = UInt8(width >> 8)
        frame[8] = UInt8(width & 0xFF)
        result += frame
      case 0xDA:  // SOS. DRI is inserted before it: the number of blocks per restart interval
        let interval = blocksPerRestart ?? (width + 15) / 16
        result += [0xFF, 0xDD, 0, 4, UInt8(interval >> 8), UInt8(interval & 0xFF)]
        result += segment
      default: break  // Comments and application data are left out.
      }
    }
    return result
  }
}

/// Appends bytes to memory of a fixed size.
struct ByteWriter {
  private let buffer: UnsafeMutableRawBufferPointer
  private(set) var count = 0
  private(set) var isOverfull = false

  init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

  mutating func append(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { append($0) }
  }

  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard count + bytes.count <= buffer.count, !isOverfull else {
      isOverfull = true
      return
    }
    UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
    count += bytes.count
  }
}
