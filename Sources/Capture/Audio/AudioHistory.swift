// SPDX-License-Identifier: Apache-2.0

/// The latest blocks of a sound, one behind the other in memory that was reserved beforehand: a
/// new one takes the place of the oldest.
///
/// It belongs to who has the lock that it lies behind.
struct AudioHistory: ~Copyable {
  private struct Block {
    var entry: AudioRing.Entry
    /// Where its bytes begin, counted from the first byte of all.
    var start: Int
  }

  private let memory: UnsafeMutableRawBufferPointer
  // A ring: block number n lies at n modulo the number of places.
  private var blocks: [Block?]
  /// The numbers of the oldest block, and of the next to come.
  private(set) var (oldest, next) = (0, 0)
  private var end = 0

  /// Reserves memory for so many bytes in so many blocks; both above zero.
  init(byteCount: Int, blockCount: Int) {
    memory = .allocate(byteCount: byteCount, alignment: 16)
    // Every page is there before the capture thread comes to it.
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    blocks = Array(repeating: nil, count: blockCount)
  }

  deinit { memory.deallocate() }

  /// Keeps a block, which is not longer than the memory.
  mutating func append(_ entry: AudioRing.Entry, _ bytes: UnsafeRawBufferPointer) {
    guard bytes.count <= memory.count else { return }
    while oldest < next, let first = blocks[oldest % blocks.count],
      next - oldest == blocks.count || end + bytes.count - first.start > memory.count
    {
      oldest += 1
    }
    let position = end % memory.count
    let head = min(bytes.count, memory.count - position)
    UnsafeMutableRawBufferPointer(rebasing: memory[position...])
      .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<head]))
    memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[head...]))
    blocks[next % blocks.count] = Block(entry: entry, start: end)
    next += 1
    end += bytes.count
  }

  /// What is known of a block that is kept, without its bytes.
  func entry(_ number: Int) -> AudioRing.Entry? {
    (oldest..<next).contains(number) ? blocks[number % blocks.count]?.entry : nil
  }

  /// A copy of the bytes of a block that is kept.
  func bytes(_ number: Int) -> [UInt8] {
    guard (oldest..<next).contains(number), let block = blocks[number % blocks.count] else {
      return []
    }
    let (count, position) = (block.entry.byteCount, block.start % memory.count)
    let head = min(count, memory.count - position)
    return Array(unsafeUninitializedCapacity: count) { target, filled in
      let target = UnsafeMutableRawBufferPointer(target)
      target.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[position..<position + head]))
      UnsafeMutableRawBufferPointer(rebasing: target[head...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<(count - head)]))
      filled = count
    }
  }
}
