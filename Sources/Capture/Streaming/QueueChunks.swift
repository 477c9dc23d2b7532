// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The memory of a ``FrameQueue``: pieces of equal size that are filled one after the other.
///
/// The pusher fills them, and takes the longest unused when one is full, a new one only where
/// none is free. The taker gives back the one that it has left. Neither waits for the other.
struct QueueChunks: ~Copyable {
  /// Bytes of all chunks.
  let capacity: Int
  let chunkBytes: Int
  private let count: Int
  private let memory: UnsafeMutableRawPointer
  /// What may be filled again, first in, first out; it has room for all.
  private let free: SPSCRing<Int>
  private let filling: UnsafeMutablePointer<Filling>
  /// The chunk that frames were last taken from; the taker's alone.
  private let takenFrom: UnsafeMutablePointer<Int>

  /// Where frames end.
  struct Position {
    var chunk = 0
    /// Bytes from the beginning, had no chunk ever been used again.
    var position = 0
  }

  /// Where the next frame goes; the pusher's alone.
  private struct Filling {
    var end = Position()
    /// Bytes left in the chunk.
    var left: Int
    var usedCount = 1
  }

  private static let alignment = 64
  private static let pageBytes = 4_096

  /// Reserves about this many bytes, at least two chunks; frames of the largest size leave none
  /// of a chunk unused.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` when the system refuses them.
  init(capacity: Int, largestFrame: Int) throws(MediaError) {
    let frame = Self.aligned(max(1, largestFrame))
    // As small as frames allow, so that little is bound by the one that is being filled.
    let frames = max(1, min((2 << 20) / frame, capacity / (16 * frame)))
    let chunkBytes = (frames * frame + Self.pageBytes - 1) / Self.pageBytes * Self.pageBytes
    let count = max(2, capacity / chunkBytes)
    let free = try MediaError.exhausting { () throws(SystemError) in
      try SPSCRing<Int>(capacity: count, takesMemoryNow: false)
    }
    guard let memory = Self.reserve(count * chunkBytes) else {
      throw Self.refusal(bytes: count * chunkBytes)
    }
    self.chunkBytes = chunkBytes
    self.count = count
    self.capacity = count * chunkBytes
    self.memory = memory
    self.free = free
    filling = .allocate(capacity: 1)
    filling.initialize(to: Filling(left: chunkBytes))
    takenFrom = .allocate(capacity: 1)
    takenFrom.initialize(to: 0)
  }

  deinit {
    munmap(memory, capacity)
    filling.deallocate()
    takenFrom.deallocate()
  }

  /// Memory whose pages are taken only when they are first written: an idle queue costs nothing.
  static func reserve(_ bytes: Int) -> UnsafeMutableRawPointer? {
    let memory = mmap(
      nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    return memory == MAP_FAILED ? nil : memory
  }

  static func refusal(bytes: Int, of purpose: String = "the frame queue") -> MediaError {
    MediaError(
      .outOfMemory, "could not reserve \(bytes / 1_048_576) MiB for \(purpose)",
      recovery: "close other programs or choose a smaller mode")
  }

  /// Whether there is room for a frame that fits a chunk, on the pusher's thread.
  func hasSpace(for byteCount: Int) -> Bool {
    let needed = Self.aligned(byteCount)
    return needed <= filling.pointee.left || filling.pointee.usedCount < count
      || free.count > 0
  }

  /// Room for a frame, on the pusher's thread; nil where there is none.
  func take(_ byteCount: Int) -> UnsafeMutableRawPointer? {
    let needed = Self.aligned(byteCount)
    guard needed <= chunkBytes else { return nil }
    if needed > filling.pointee.left {
      guard let next = nextChunk() else { return nil }
      filling.pointee.end.chunk = next
      filling.pointee.end.position += filling.pointee.left
      filling.pointee.left = chunkBytes
    }
    let start = chunkBytes - filling.pointee.left
    filling.pointee.left -= needed
    filling.pointee.end.position += needed
    return memory + filling.pointee.end.chunk * chunkBytes + start
  }

  /// Fills the chunk from its beginning again, on the pusher's thread, where all frames that were
  /// ever put there were released.
  func rewind() {
    guard filling.pointee.left < chunkBytes else { return }
    // As if it were another chunk: a position is never taken twice.
    filling.pointee.end.position += filling.pointee.left
    filling.pointee.left = chunkBytes
  }

  /// Where the last frame ends, on the pusher's thread.
  var end: Position { filling.pointee.end }

  private func nextChunk() -> Int? {
    if let chunk = free.pop() { return chunk }
    guard filling.pointee.usedCount < count else { return nil }
    defer { filling.pointee.usedCount += 1 }
    return filling.pointee.usedCount
  }

  /// Learns that all frames before those of a chunk were released, on the taker's thread.
  func didRelease(upTo chunk: Int) {
    guard chunk != takenFrom.pointee else { return }
    _ = free.push(takenFrom.pointee)  // The ring has space for all chunks.
    takenFrom.pointee = chunk
  }

  static func aligned(_ count: Int) -> Int {
    (count + alignment - 1) / alignment * alignment
  }
}
