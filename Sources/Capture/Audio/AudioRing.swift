// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore

/// A ring of audio blocks between the capture thread and one consumer.
///
/// The memory is reserved in advance. Neither side blocks. Neither side allocates memory, except
/// that `pop()` returns a copy of the block.
final class AudioRing: Sendable {
  /// The metadata of an audio block.
  struct Entry {
    let position: Int64
    let sampleCount: Int
    let nanoseconds: Int64
    let gap: AudioGap?
    let byteCount: Int
    /// The number of the stream that the block belongs to.
    ///
    /// Each restart of the capture begins a new stream.
    let stream: Int
  }

  private let blockSize: Int
  private let entries: SPSCRing<Entry>
  // Each entry has a slot for its bytes. The slot's index is the entry's number modulo the
  // capacity.
  private nonisolated(unsafe) let memory: UnsafeMutableRawPointer

  /// Reserves memory for the blocks.
  ///
  /// - Parameters:
  ///   - capacity: The greatest number of waiting blocks.
  ///   - blockSize: The maximum size of a block in bytes.
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  init(capacity: Int, blockSize: Int) throws(MediaError) {
    self.blockSize = blockSize
    entries = try CallStage.resources.converting { () throws(CallFailure) in
      try SPSCRing(capacity: capacity)
    }
    memory = .allocate(byteCount: max(1, capacity * blockSize), alignment: 16)
    // Every page is written now, because the first write to a page causes a page fault. The capture
    // thread must not be delayed by it.
    memory.initializeMemory(as: UInt8.self, repeating: 0, count: capacity * blockSize)
  }

  deinit { memory.deallocate() }

  /// The number of blocks in the ring.
  var count: Int { entries.count }

  private func bytes(of number: Int) -> UnsafeMutableRawPointer {
    memory + number % entries.capacity * blockSize
  }

  /// Appends a copy of a block, or returns false if the ring is full.
  func push(_ block: AudioBlock, gap: AudioGap?, stream: Int = 0) -> Bool {
    guard entries.count < entries.capacity, block.bytes.count <= blockSize else { return false }
    if let source = block.bytes.baseAddress {
      bytes(of: entries.endNumber).copyMemory(from: source, byteCount: block.bytes.count)
    }
    return entries.push(
      Entry(
        position: block.position, sampleCount: block.sampleCount, nanoseconds: block.nanoseconds,
        gap: gap, byteCount: block.bytes.count, stream: stream))
  }

  /// Removes the oldest block and returns a copy, or nil if the ring is empty.
  func pop() -> (entry: Entry, bytes: [UInt8])? {
    var result: (entry: Entry, bytes: [UInt8])?
    popFirst { entry, bytes in result = (entry, Array(bytes)) }
    return result
  }

  /// Calls a closure with the oldest block and then removes it, or returns false if the ring is
  /// empty.
  @discardableResult
  func popFirst(_ body: (Entry, UnsafeRawBufferPointer) -> Void) -> Bool {
    let number = entries.startNumber
    guard let entry = entries[number] else { return false }
    body(entry, UnsafeRawBufferPointer(start: bytes(of: number), count: entry.byteCount))
    entries.pop()
    return true
  }
}
