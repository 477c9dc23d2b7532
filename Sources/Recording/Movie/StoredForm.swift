// SPDX-License-Identifier: Apache-2.0
import LibAV

/// How a MOV file wants the bytes of a sample, where that is not as cameras and encoders give
/// them.
enum StoredForm: Equatable {
  case asItIs
  /// QuickTime's grey has white at 0.
  case inverted
  /// Rows of an even number of bytes, where those of the picture have an odd one.
  case evenRows(of: Int, inverted: Bool)
  /// Units of H.264 with their length in front, where the byte stream has start codes
  /// (ISO/IEC 14496-15, 5.3).
  case lengthPrefixed

  init(_ parameters: CodecParameters) {
    switch parameters.codecName {
    case "h264" where !parameters.isLengthPrefixed: self = .lengthPrefixed
    case "rawvideo":
      let isGrey = parameters.pixelFormat == .gray8
      let rowBytes = parameters.width * (isGrey ? 1 : 3)
      let isPadded = (isGrey || parameters.pixelFormat == .rgb24) && rowBytes % 2 != 0
      self = isPadded ? .evenRows(of: rowBytes, inverted: isGrey) : isGrey ? .inverted : .asItIs
    default: self = .asItIs
    }
  }

  /// The bytes in this form: themselves, or made in `scratch` and valid until its next use.
  func shape(
    _ bytes: UnsafeRawBufferPointer, in scratch: inout ScratchBytes
  ) -> UnsafeRawBufferPointer {
    switch self {
    case .asItIs: return bytes
    case .inverted:
      let target = scratch.reserve(bytes.count)
      for index in 0..<bytes.count { target[index] = ~bytes[index] }
      return UnsafeRawBufferPointer(target)
    case .evenRows(let rowBytes, let isInverted):
      let mask: UInt8 = isInverted ? 0xFF : 0
      let target = scratch.reserve(bytes.count / rowBytes * (rowBytes + 1))
      for row in 0..<bytes.count / rowBytes {
        let (from, to) = (row * rowBytes, row * (rowBytes + 1))
        for index in 0..<rowBytes { target[to + index] = bytes[from + index] ^ mask }
        target[to + rowBytes] = mask
      }
      return UnsafeRawBufferPointer(target)
    case .lengthPrefixed:
      let units = AnnexB.units(of: bytes)
      let target = scratch.reserve(units.reduce(0) { $0 + 4 + $1.count })
      var place = 0
      for unit in units {
        target.storeBytes(
          of: UInt32(clamping: unit.count).bigEndian, toByteOffset: place, as: UInt32.self)
        UnsafeMutableRawBufferPointer(rebasing: target[(place + 4)...])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[unit]))
        place += 4 + unit.count
      }
      return UnsafeRawBufferPointer(target)
    }
  }
}

/// Memory that is used again and again.
struct ScratchBytes: ~Copyable {
  private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  deinit { memory.deallocate() }

  /// So many bytes, of any value; what was reserved before is gone.
  mutating func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer {
    if memory.count < count {
      memory.deallocate()
      memory = .allocate(byteCount: count, alignment: 64)
    }
    return UnsafeMutableRawBufferPointer(rebasing: memory[..<count])
  }
}
