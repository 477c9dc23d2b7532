// SPDX-License-Identifier: Apache-2.0

/// What tells whether all of a sample reached the disk.
///
/// Disks lose whole sectors of 512 bytes, which then read as zeros, so some words of each sector that
/// the sample lies in are enough; to add up every byte would cost as much as to write them. One word
/// is too little, JPEG's tables have eight zeros in a row; and those of one line of the processor's
/// cache cost as much as a single one.
package struct SampleCheck {
  private static let sectorBytes: Int64 = 512
  private static let words = 4

  private let bytes: UnsafeRawBufferPointer
  /// One for each word of a sector: a sum of all would have each word wait for the one before.
  private var sums: (UInt64, UInt64, UInt64, UInt64)
  /// The words that are added next; the others of a sample are one sector apart.
  private var offset = 0
  private var nextIndex: Int

  /// Begins to check a sample whose first byte lies at a place of the file.
  package init(of bytes: UnsafeRawBufferPointer, at position: Int64) {
    self.bytes = bytes
    sums = (UInt64(bytes.count), 1, 2, 3)
    nextIndex = Int(Self.sectorBytes - position % Self.sectorBytes)
  }

  /// The check of a sample whose first byte lies at a place of the file.
  package static func value(of bytes: UnsafeRawBufferPointer, at position: Int64) -> UInt64 {
    var check = SampleCheck(of: bytes, at: position)
    check.add(upTo: bytes.count)
    return check.finish()
  }

  /// Looks at what lies before a place of the sample: best when the processor has just seen it.
  package mutating func add(upTo end: Int) {
    // Behind the place there may be nothing yet, but where the sample ends nothing comes.
    let limit = end < bytes.count ? end - 8 * Self.words : bytes.count - 1
    while offset <= limit {
      add(words: offset)
      offset = nextIndex
      nextIndex += Int(Self.sectorBytes)
    }
  }

  /// The check, when all of the sample was looked at.
  package consuming func finish() -> UInt64 {
    if bytes.count > 0 { add(words: max(0, bytes.count - 8 * Self.words)) }
    return Self.mixed(Self.mixed(Self.mixed(sums.0, sums.1), sums.2), sums.3)
  }

  private mutating func add(words offset: Int) {
    sums.0 = Self.mixed(sums.0, word(offset))
    sums.1 = Self.mixed(sums.1, word(offset + 8))
    sums.2 = Self.mixed(sums.2, word(offset + 16))
    sums.3 = Self.mixed(sums.3, word(offset + 24))
  }

  /// The word at a place; of what there is of it, where the sample ends before it does.
  private func word(_ offset: Int) -> UInt64 {
    if offset + 8 <= bytes.count {
      return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    var word: UInt64 = 0
    for index in min(offset, bytes.count)..<bytes.count { word = word << 8 | UInt64(bytes[index]) }
    return word
  }

  /// FNV-1a, a word at a time, so that order counts.
  private static func mixed(_ sum: UInt64, _ word: UInt64) -> UInt64 {
    let product = (sum ^ word) &* 0x0000_0100_0000_01B3
    return product ^ product >> 29
  }
}
