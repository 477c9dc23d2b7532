// SPDX-License-Identifier: Apache-2.0

import OvercrankLinuxSystem
import OvercrankMediaCore

/// Blocks of sound on their way from the capture thread to one other, in memory that was reserved
/// beforehand.
///
/// Neither side waits or asks for memory to pass a block.
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

  private let blockSize: Int
  private let entries: SPSCRing<Entry>
  // A block's bytes lie where its entry's number says.
  private nonisolated(unsafe) let memory: UnsafeMutableRawPointer

  /// - Parameters:
  ///   - capacity: The most blocks that wait.
  ///   - blockSize: The most bytes of a block.
  /// - Throws: `MediaError` with `.outOfMemory` when the system refuses the memory.
  init(capacity: Int, blockSize: Int) throws(MediaError) {
    self.blockSize = blockSize
    entries = try MediaError.exhausting { () throws(SystemError) in
      try SPSCRing(capacity: capacity)
    }
    memory = .allocate(byteCount: max(1, capacity * blockSize), alignment: 16)
    // Every page is there before the capture thread comes to it.
    memory.initializeMemory(as: UInt8.self, repeating: 0, count: capacity * blockSize)
  }

  deinit { memory.deallocate() }

  /// How many blocks wait.
  var count: Int { entries.count }

  private func bytes(of number: Int) -> UnsafeMutableRawPointer {
    memory + number % entries.capacity * blockSize
  }

  /// Copies a block in; false where there is no room.
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

  /// The oldest block, copied out; nil where none waits.
  func pop() -> (entry: Entry, bytes: [UInt8])? {
    var result: (entry: Entry, bytes: [UInt8])?
    popFirst { entry, bytes in result = (entry, Array(bytes)) }
    return result
  }

  /// Shows the oldest block where it lies, and takes it out; false where none waits.
  @discardableResult
  func popFirst(_ body: (Entry, UnsafeRawBufferPointer) -> Void) -> Bool {
    let number = entries.startNumber
    guard let entry = entries[number] else { return false }
    body(entry, UnsafeRawBufferPointer(start: bytes(of: number), count: entry.byteCount))
    entries.pop()
    return true
  }
}
