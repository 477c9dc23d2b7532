// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore

/// The memory of a ``FrameQueue``, in chunks of equal size.
///
/// The producer fills chunks one after the other. It reuses the chunk that has been free the
/// longest, and uses new memory only if no chunk is free. The consumer frees a chunk once it reads
/// from the next one. Neither thread blocks the other.
struct QueueChunks: ~Copyable {
  /// The total size of the chunks in bytes.
  let capacity: Int
  let chunkBytes: Int
  private let count: Int
  private let memory: UnsafeMutableRawPointer
  /// The free chunks, in the order in which they were freed.
  ///
  /// The ring has space for all chunks.
  private let free: SPSCRing<Int>
  private let filling: UnsafeMutablePointer<Filling>
  /// The chunk that the consumer reads from.
  ///
  /// Used only by the consumer.
  private let takenFrom: UnsafeMutablePointer<Int>

  /// The chunk and the position in the queue's memory at which a frame ends.
  struct Position {
    var chunk = 0
    /// The number of bytes from the start of the queue, counted as if no memory were reused.
    var position = 0
  }

  /// The chunk and the position where the producer stores the next frame.
  ///
  /// Used only by the producer.
  private struct Filling {
    var end = Position()
    /// The number of bytes that are still free in the chunk that is being filled.
    var left: Int
    var usedCount = 1
  }

  private static let alignment = 64
  private static let pageBytes = 4_096

  /// Reserves approximately `capacity` bytes in at least two chunks.
  ///
  /// The chunk size is a multiple of the largest frame, rounded up to whole pages. Chunks that
  /// contain such frames have little unused space.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  init(capacity: Int, largestFrame: Int) throws(MediaError) {
    let frame = Self.aligned(max(1, largestFrame))
    // A chunk can be reused only when all its frames are released, so chunks are as small as the
    // frames allow.
    let frames = max(1, min((2 << 20) / frame, capacity / (16 * frame)))
    let chunkBytes = (frames * frame + Self.pageBytes - 1) / Self.pageBytes * Self.pageBytes
    let count = max(2, capacity / chunkBytes)
    let free = try CallStage.resources.converting { () throws(CallFailure) in
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

  /// Reserves memory whose pages are allocated at the first write.
  ///
  /// A page that was never written uses no memory.
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

  /// Whether a frame has space now.
  ///
  /// The frame must be no larger than a chunk.
  ///
  /// Call this on the producer's thread.
  func hasSpace(for byteCount: Int) -> Bool {
    let needed = Self.aligned(byteCount)
    return needed <= filling.pointee.left || filling.pointee.usedCount < count
      || free.count > 0
  }

  /// Allocates space for a frame, or returns nil if the queue is full.
  ///
  /// Call this on the producer's thread.
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

  /// Starts to fill the current chunk from its beginning.
  ///
  /// All frames in the chunk must already be released.
  ///
  /// Call this on the producer's thread.
  func rewind() {
    guard filling.pointee.left < chunkBytes else { return }
    // The position skips the unused rest of the chunk, as `take(_:)` does when it starts a new
    // chunk. If it went back instead, positions would repeat.
    filling.pointee.end.position += filling.pointee.left
    filling.pointee.left = chunkBytes
  }

  /// The position in the queue's memory at which the last frame ends.
  ///
  /// Call this on the producer's thread.
  var end: Position { filling.pointee.end }

  private func nextChunk() -> Int? {
    if let chunk = free.pop() { return chunk }
    guard filling.pointee.usedCount < count else { return nil }
    defer { filling.pointee.usedCount += 1 }
    return filling.pointee.usedCount
  }

  /// Frees the previous chunk once the consumer has released all frames in it and reads from
  /// `chunk`.
  ///
  /// Call this on the consumer's thread.
  func didRelease(upTo chunk: Int) {
    guard chunk != takenFrom.pointee else { return }
    _ = free.push(takenFrom.pointee)  // Always succeeds: the ring has space for all chunks.
    takenFrom.pointee = chunk
  }

  static func aligned(_ count: Int) -> Int {
    (count + alignment - 1) / alignment * alignment
  }
}
