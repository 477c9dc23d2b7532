// SPDX-License-Identifier: Apache-2.0

/// The most recent audio blocks, in memory that is reserved in advance.
///
/// New blocks replace the oldest ones. The owner must protect the history with a lock.
struct AudioHistory: ~Copyable {
  private struct Block {
    var entry: AudioRing.Entry
    /// The number of bytes that were appended to the history before this block.
    ///
    /// Modulo the size of the memory, this is the offset of the block's first byte.
    var start: Int
  }

  private let memory: UnsafeMutableRawBufferPointer
  // This is a ring: block n has the index n modulo the capacity.
  private var blocks: [Block?]
  /// The number of the oldest block in the history, and the number that the next added block gets.
  private(set) var (oldest, next) = (0, 0)
  private var end = 0

  /// Reserves memory for at most `blockCount` blocks with at most `byteCount` bytes in total.
  ///
  /// Both numbers must be above zero.
  init(byteCount: Int, blockCount: Int) {
    memory = .allocate(byteCount: byteCount, alignment: 16)
    // Every page is written now, because the first write to a page causes a page fault. The capture
    // thread must not be delayed by it.
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    blocks = Array(repeating: nil, count: blockCount)
  }

  deinit { memory.deallocate() }

  /// Appends a block.
  ///
  /// A block larger than the memory is ignored.
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

  /// The metadata of the block with a number, or nil if the block is not in the history.
  func entry(_ number: Int) -> AudioRing.Entry? {
    (oldest..<next).contains(number) ? blocks[number % blocks.count]?.entry : nil
  }

  /// A copy of the bytes of the block with a number, or an empty array if the block is not in the
  /// history.
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
