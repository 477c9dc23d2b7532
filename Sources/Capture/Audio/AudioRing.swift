// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Blocks of sound on their way from the capture thread to one other, in memory that was reserved
/// beforehand.
///
/// Neither side waits or asks for memory to pass a block: each owns one counter and reads the
/// other's.
final class AudioRing: Sendable {
  /// A block without its bytes.
  struct Entry {
    let position: Int64
    let sampleCount: Int
    let nanoseconds: Int64
    let gap: AudioGap?
    let byteCount: Int
    /// Which of the streams that came one after the other the block is of.
    let stream: Int
  }

  private let capacity: Int
  private let blockSize: Int
  // Entries between `tail` and `head` are the taker's, the others the pusher's.
  private nonisolated(unsafe) let entries: UnsafeMutablePointer<Entry?>
  private nonisolated(unsafe) let memory: UnsafeMutableRawPointer
  private let head = Atomic<Int>(0)
  private let tail = Atomic<Int>(0)

  /// - Parameters:
  ///   - capacity: The most blocks that wait.
  ///   - blockSize: The most bytes of a block.
  init(capacity: Int, blockSize: Int) {
    self.capacity = capacity
    self.blockSize = blockSize
    entries = .allocate(capacity: capacity)
    entries.initialize(repeating: nil, count: capacity)
    memory = .allocate(byteCount: max(1, capacity * blockSize), alignment: 16)
    // Every page is there before the capture thread comes to it.
    memory.initializeMemory(as: UInt8.self, repeating: 0, count: capacity * blockSize)
  }

  deinit {
    entries.deinitialize(count: capacity)
    entries.deallocate()
    memory.deallocate()
  }

  /// How many blocks wait.
  var count: Int { head.load(ordering: .acquiring) - tail.load(ordering: .acquiring) }

  /// Copies a block in; false where there is no room.
  func push(_ block: AudioBlock, gap: AudioGap?, stream: Int = 0) -> Bool {
    let head = head.load(ordering: .relaxed)
    guard head - tail.load(ordering: .acquiring) < capacity, block.bytes.count <= blockSize else {
      return false
    }
    let slot = head % capacity
    if let source = block.bytes.baseAddress {
      (memory + slot * blockSize).copyMemory(from: source, byteCount: block.bytes.count)
    }
    entries[slot] = Entry(
      position: block.position, sampleCount: block.sampleCount, nanoseconds: block.nanoseconds,
      gap: gap, byteCount: block.bytes.count, stream: stream)
    self.head.store(head + 1, ordering: .releasing)
    return true
  }

  /// The oldest block, copied out; nil where none waits.
  func pop() -> (entry: Entry, bytes: [UInt8])? {
    var result: (entry: Entry, bytes: [UInt8])?
    popFirst { entry, bytes in result = (entry, Array(bytes)) }
    return result
  }

  /// Shows the oldest block where it lies, and takes it out; false where none waits.
  @discardableResult
  func popFirst(_ body: (Entry, UnsafeRawBufferPointer) -> Void) -> Bool {
    let tail = tail.load(ordering: .relaxed)
    guard head.load(ordering: .acquiring) > tail, let entry = entries[tail % capacity] else {
      return false
    }
    body(
      entry,
      UnsafeRawBufferPointer(
        start: memory + tail % capacity * blockSize, count: entry.byteCount))
    self.tail.store(tail + 1, ordering: .releasing)
    return true
  }
}
