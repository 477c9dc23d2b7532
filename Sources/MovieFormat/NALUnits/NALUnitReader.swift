// SPDX-License-Identifier: Apache-2.0

/// Iterates over the NAL units of an H.264 or HEVC packet.
package struct NALUnitReader {
  private let bytes: UnsafeRawBufferPointer
  private let lengthSize: Int?
  private var position = 0

  /// Creates a reader for a packet.
  ///
  /// - Parameters:
  ///   - bytes: The packet, which must stay valid while the reader is used.
  ///   - lengthSize: The size of each NAL unit's length prefix in bytes; nil for a byte stream with
  ///     start codes.
  package init(_ bytes: UnsafeRawBufferPointer, lengthSize: Int?) {
    self.bytes = bytes
    self.lengthSize = lengthSize
  }

  /// The byte range of the next NAL unit, beginning with its header byte.
  ///
  /// Nil at the end.
  ///
  /// If the stated length of a NAL unit exceeds the packet, the range ends at the end of the
  /// packet.
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
