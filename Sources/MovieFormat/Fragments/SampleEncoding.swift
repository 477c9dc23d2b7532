// SPDX-License-Identifier: Apache-2.0

/// The conversion of bytes from a camera or encoder to the bytes of a sample in a MOV file.
package enum SampleEncoding: Equatable {
  case asItIs
  /// Rows are padded to an even number of bytes.
  ///
  /// The associated value is the odd number of bytes in a source row.
  case evenRows(of: Int)
  /// H.264 NAL units begin with lengths instead of start codes (ISO/IEC 14496-15, 5.3).
  case lengthPrefixed

  /// Returns the converted bytes.
  ///
  /// These are the source bytes themselves, or memory of `scratch` that is valid until `scratch` is
  /// used again.
  package func shape(
    _ bytes: UnsafeRawBufferPointer, in scratch: inout ScratchBytes
  ) -> UnsafeRawBufferPointer {
    switch self {
    case .asItIs: return bytes
    case .evenRows(let rowBytes):
      let target = scratch.reserve(bytes.count / rowBytes * (rowBytes + 1))
      for row in 0..<bytes.count / rowBytes {
        let (from, to) = (row * rowBytes, row * (rowBytes + 1))
        UnsafeMutableRawBufferPointer(rebasing: target[to..<to + rowBytes])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[from..<from + rowBytes]))
        target[to + rowBytes] = 0
      }
      return UnsafeRawBufferPointer(target)
    case .lengthPrefixed:
      let units = AnnexB.units(of: bytes)
      let target = scratch.reserve(units.reduce(0) { $0 + 4 + $1.count })
      var position = 0
      for unit in units {
        target.storeBytes(
          of: UInt32(clamping: unit.count).bigEndian, toByteOffset: position, as: UInt32.self)
        UnsafeMutableRawBufferPointer(rebasing: target[(position + 4)...])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[unit]))
        position += 4 + unit.count
      }
      return UnsafeRawBufferPointer(target)
    }
  }
}

/// Memory that is reused from call to call.
package struct ScratchBytes: ~Copyable {
  private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  package init() {}

  deinit { memory.deallocate() }

  /// Returns `count` bytes with undefined contents.
  ///
  /// The bytes from earlier calls become invalid.
  package mutating func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer {
    if memory.count < count {
      memory.deallocate()
      memory = .allocate(byteCount: count, alignment: 64)
    }
    return UnsafeMutableRawBufferPointer(rebasing: memory[..<count])
  }
}
