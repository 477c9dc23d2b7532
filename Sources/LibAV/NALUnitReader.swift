// SPDX-License-Identifier: Apache-2.0

/// Finds the units (NAL units) of an H.264 or HEVC packet.
package struct NALUnitReader {
  private let bytes: UnsafeRawBufferPointer
  private let lengthSize: Int?
  private var place = 0

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
    guard let lengthSize else { return nextAfterStartCode() }
    guard place < bytes.count - lengthSize else { return nil }
    let length = bytes[place..<place + lengthSize].reduce(0) { $0 << 8 | Int($1) }
    let start = place + lengthSize
    place = min(bytes.count, start + length)
    return start..<max(start + 1, place)
  }

  private mutating func nextAfterStartCode() -> Range<Int>? {
    guard let start = startCode(from: place), start + 3 < bytes.count else { return nil }
    let next = startCode(from: start + 3) ?? bytes.count
    place = next
    // Zeros before a start code belong to it.
    var end = next
    while end > start + 4, bytes[end - 1] == 0 { end -= 1 }
    return start + 3..<end
  }

  private func startCode(from first: Int) -> Int? {
    var index = first
    while index + 2 < bytes.count {
      if bytes[index + 2] > 1 {
        index += 3
      } else if bytes[index] == 0, bytes[index + 1] == 0, bytes[index + 2] == 1 {
        return index
      } else {
        index += 1
      }
    }
    return nil
  }
}
