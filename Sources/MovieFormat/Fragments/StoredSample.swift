// SPDX-License-Identifier: Apache-2.0

/// A sample that is stored in the file, without its bytes.
package struct StoredSample: Hashable, Sendable {
  /// The index of the track in the file.
  package var track: Int
  /// The byte offset of the sample in the file.
  package var position: Int64
  package var byteCount: Int
  /// The decoding time, in track ticks since the track's first sample.
  package var ticks: Int64
  /// The time from decoding to presentation, in track ticks.
  package var presentationOffset: Int64
  /// The duration in track ticks.
  ///
  /// It is provisional until the next sample of the track arrives.
  package var duration: Int64
  package var isKeyFrame: Bool
  /// Whether no other sample depends on this one.
  package var isDroppable: Bool
  /// The ``SampleCheck`` of the sample's bytes.
  package var check: UInt64
  package var end: Int64 { position + Int64(byteCount) }

  /// The value of `track` in the records of attachments, which belong to no track.
  static let attachment = 255

  package init(
    track: Int, position: Int64 = 0, byteCount: Int, ticks: Int64, presentationOffset: Int64 = 0,
    duration: Int64, isKeyFrame: Bool, isDroppable: Bool = false, check: UInt64
  ) {
    (self.track, self.position, self.byteCount) = (track, position, byteCount)
    (self.ticks, self.presentationOffset) = (ticks, presentationOffset)
    (self.duration, self.isKeyFrame) = (duration, isKeyFrame)
    (self.isDroppable, self.check) = (isDroppable, check)
  }

  /// Whether these bytes are identical to the sample that was written, according to that sample's
  /// checksum.
  func isWhole(_ bytes: [UInt8]) -> Bool {
    bytes.count == byteCount
      && bytes.withUnsafeBytes { SampleCheck.value(of: $0, at: position) } == check
  }
}

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

/// A fast checksum that detects whether a part of a sample did not reach the disk.
///
/// After a power failure, disks lose whole 512-byte sectors, which then read as zeros. To detect
/// this, four words (32 bytes) of every sector are summed. Summing all bytes would take as long as
/// writing them. A single word would be too little, because JPEG tables contain eight consecutive
/// zero bytes. The four words are in the same cache line, so reading them takes no longer than
/// reading one.
package struct SampleCheck {
  private static let sectorBytes: Int64 = 512
  /// The size of four words.
  private static let blockBytes = 32

  private let bytes: UnsafeRawBufferPointer
  /// The four sums, one for each position in a block of four words.
  ///
  /// The first word of each block is added to the first sum, the second word to the second sum, and
  /// so on.
  ///
  /// The CPU computes the four sums in parallel.
  private var sums: (UInt64, UInt64, UInt64, UInt64)
  /// The byte offset in the sample of the next four words to add.
  private var offset = 0
  private var nextIndex: Int

  /// Starts the checksum of a sample that is stored at a file offset.
  package init(of bytes: UnsafeRawBufferPointer, at position: Int64) {
    self.bytes = bytes
    sums = (UInt64(bytes.count), 1, 2, 3)
    nextIndex = Int(Self.sectorBytes - position % Self.sectorBytes)
  }

  /// Returns the checksum of a sample that is stored at a file offset.
  package static func value(of bytes: UnsafeRawBufferPointer, at position: Int64) -> UInt64 {
    var check = SampleCheck(of: bytes, at: position)
    check.add(upTo: bytes.count)
    return check.finish()
  }

  /// Adds the words that lie before an offset in the sample to the checksum.
  ///
  /// This is fastest directly after these bytes were used, while they are still in the CPU cache.
  package mutating func add(upTo end: Int) {
    // The bytes at and after `end` may not exist yet, so only whole words before `end` are read.
    // Only at the end of the sample, the last word may be shorter.
    let limit = end < bytes.count ? end - Self.blockBytes : bytes.count - 1
    let wholeLimit = min(limit, bytes.count - Self.blockBytes)
    // The loop runs for each sector of a sample, so its state is in local variables.
    var (first, second, third, fourth) = sums
    var (start, next) = (offset, nextIndex)
    while start <= wholeLimit {
      first = Self.mixed(first, word(start))
      second = Self.mixed(second, word(start + 8))
      third = Self.mixed(third, word(start + 16))
      fourth = Self.mixed(fourth, word(start + 24))
      start = next
      next += Int(Self.sectorBytes)
    }
    sums = (first, second, third, fourth)
    (offset, nextIndex) = (start, next)
    // Less than a block is left of the sample.
    while offset <= limit {
      addLastBlock(at: offset)
      offset = nextIndex
      nextIndex += Int(Self.sectorBytes)
    }
  }

  /// Returns the checksum, after the whole sample was added.
  ///
  /// The checksum is wrong if a part of the sample was not added.
  package consuming func finish() -> UInt64 {
    if bytes.count > 0 { addLastBlock(at: max(0, bytes.count - Self.blockBytes)) }
    return Self.mixed(Self.mixed(Self.mixed(sums.0, sums.1), sums.2), sums.3)
  }

  private mutating func addLastBlock(at offset: Int) {
    sums.0 = Self.mixed(sums.0, lastWord(offset))
    sums.1 = Self.mixed(sums.1, lastWord(offset + 8))
    sums.2 = Self.mixed(sums.2, lastWord(offset + 16))
    sums.3 = Self.mixed(sums.3, lastWord(offset + 24))
  }

  /// The word at an offset.
  private func word(_ offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The word at an offset near the end of the sample, which may be shorter than 8 bytes.
  private func lastWord(_ offset: Int) -> UInt64 {
    if offset + 8 <= bytes.count { return word(offset) }
    var word: UInt64 = 0
    for index in min(offset, bytes.count)..<bytes.count { word = word << 8 | UInt64(bytes[index]) }
    return word
  }

  /// Mixes a word into a sum as FNV-1a does, so that the order of the words matters.
  private static func mixed(_ sum: UInt64, _ word: UInt64) -> UInt64 {
    let product = (sum ^ word) &* 0x0000_0100_0000_01B3
    return product ^ product >> 29
  }
}
