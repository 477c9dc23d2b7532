// SPDX-License-Identifier: Apache-2.0

/// The byte stream of H.264 (ITU-T H.264, Annex B), whose units begin with 00 00 01.
package enum AnnexB {
  /// Whether a picture holds a slice of an IDR picture (NAL unit type 5).
  package static func holdsKeyFrame(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Where a unit ends need not be known, and to look for that would read every picture through.
    var offset = startCode(in: bytes, from: 0) + 3
    while offset < bytes.count {
      switch bytes[offset] & 0x1F {
      case 5: return true
      case 1: return false  // A slice of another picture: headers come before, not after.
      default: offset = startCode(in: bytes, from: offset) + 3
      }
    }
    return false
  }

  /// Whether there is any unit.
  package static func holdsUnit(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let start = startCode(in: bytes, from: 0) + 3
    return start < bytes.count && bytes[start...].contains { $0 != 0 }
  }

  /// Where all units lie, without start codes and the zeros that may follow a unit.
  package static func units(of bytes: UnsafeRawBufferPointer) -> [Range<Int>] {
    var units: [Range<Int>] = []
    while let unit = nextUnit(of: bytes, from: units.last?.upperBound ?? 0) { units.append(unit) }
    return units
  }

  /// Where the first unit lies whose start code is at an offset or behind it; nil where there is
  /// none.
  package static func nextUnit(
    of bytes: UnsafeRawBufferPointer, from offset: Int
  ) -> Range<Int>? {
    var start = startCode(in: bytes, from: offset) + 3
    while start < bytes.count {
      let next = startCode(in: bytes, from: start)
      var end = next
      while end > start, bytes[end - 1] == 0 { end -= 1 }
      if end > start { return start..<end }
      start = next + 3
    }
    return nil
  }

  /// Where the next 00 00 01 begins; the end where there is none.
  private static func startCode(in bytes: UnsafeRawBufferPointer, from offset: Int) -> Int {
    var offset = offset
    while offset + 2 < bytes.count {
      switch bytes[offset + 2] {
      case 0: offset += 1
      case 1 where bytes[offset] == 0 && bytes[offset + 1] == 0: return offset
      default: offset += 3
      }
    }
    return bytes.count
  }
}
