// SPDX-License-Identifier: Apache-2.0

/// The H.264 byte stream format (ITU-T H.264, Annex B), with start codes 00 00 01.
package enum AnnexB {
  /// Whether an access unit contains an IDR slice (NAL unit type 5).
  package static func holdsKeyFrame(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Only start codes are searched, and the search stops at the first slice, because parsing every
    // frame completely would be slow.
    var offset = startCode(in: bytes, from: 0) + 3
    while offset < bytes.count {
      switch bytes[offset] & 0x1F {
      case 5: return true
      case 1: return false  // An IDR frame contains no non-IDR slice.
      default: offset = startCode(in: bytes, from: offset) + 3
      }
    }
    return false
  }

  /// Whether other frames may refer to this access unit.
  ///
  /// This is the case if `nal_ref_idc` of its first slice is not 0.
  package static func isReferenced(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var offset = startCode(in: bytes, from: 0) + 3
    while offset < bytes.count {
      if (1...5).contains(bytes[offset] & 0x1F) { return bytes[offset] & 0x60 != 0 }
      offset = startCode(in: bytes, from: offset) + 3
    }
    return true
  }

  /// Whether the bytes contain at least one NAL unit.
  package static func holdsUnit(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let start = startCode(in: bytes, from: 0) + 3
    return start < bytes.count && bytes[start...].contains { $0 != 0 }
  }

  /// The byte ranges of all NAL units, without start codes and trailing zeros.
  package static func units(of bytes: UnsafeRawBufferPointer) -> [Range<Int>] {
    var units: [Range<Int>] = []
    while let unit = nextUnit(of: bytes, from: units.last?.upperBound ?? 0) { units.append(unit) }
    return units
  }

  /// The first NAL unit whose start code is at or after an offset.
  ///
  /// Nil if there is none.
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

  /// The offset of the next start code 00 00 01, or the end of the bytes if there is none.
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
