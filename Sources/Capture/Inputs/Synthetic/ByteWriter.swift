// SPDX-License-Identifier: Apache-2.0

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
