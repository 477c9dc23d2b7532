// SPDX-License-Identifier: Apache-2.0

/// Finds the units (NAL units) of an H.264 or HEVC packet.
package struct NALUnitReader {
  private let bytes: UnsafeRawBufferPointer
  private let lengthSize: Int?
  private var position = 0

  /// Makes a reader of a packet's bytes.
  ///
  /// - Parameters:
  ///   - bytes: The packet; valid as long as the reader is used.
  ///   - lengthSize: How many bytes give the length of each unit; nil for a byte stream, in which
  ///     each begins with a start code.
  package init(_ bytes: UnsafeRawBufferPointer, lengthSize: Int?) {
    self.bytes = bytes
    self.lengthSize = lengthSize
  }

  /// Where the next unit lies, from its first byte, which tells its type; nil at the end.
  ///
  /// A unit that claims to be longer than the packet ends with it.
  package mutating func next() -> Range<Int>? {
    guard let lengthSize else {
      let unit = AnnexB.nextUnit(of: bytes, from: position)
      position = unit?.upperBound ?? bytes.count
      return unit
    }
    guard position < bytes.count - lengthSize else { return nil }
    let length = bytes[position..<position + lengthSize].reduce(0) { $0 << 8 | Int($1) }
    let start = position + lengthSize
    position = min(bytes.count, start + length)
    return start..<max(start + 1, position)
  }
}
