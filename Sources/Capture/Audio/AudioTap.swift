// SPDX-License-Identifier: Apache-2.0

import Dispatch
package import OvercrankDeviceDiscovery
package import OvercrankMediaCore
import Synchronization

/// Keeps the last seconds of an input's audio, so that a recording can start in the past.
///
/// ```
///   capture thread ─ take ─▶ ring ─▶ history ◀─ read ─ any number of takes
/// ```
///
/// The capture thread neither blocks nor allocates memory. It writes each block to a ring. If no
/// reader holds the lock, it then moves the ring's blocks to the history. If a reader holds the
/// lock, the reader moves them. The history replaces its oldest blocks. A reader that has not read
/// them yet loses them.
package final class AudioTap: AudioBlockSink {
  /// The sample format.
  package let format: AudioFormat
  private let gate: ConnectionGate
  private let meter: LevelMeter
  private let ring: AudioRing
  private let history: Mutex<AudioHistory>
  private let isOver = Atomic<Bool>(false)
  private let lastTime = Atomic<Int64>(.max)
  private let waiting = Atomic<Int>(0)
  private let wake = DispatchSemaphore(value: 0)
  // Used only by the capture thread. A new stream starts only after the previous capture thread has
  // ended.
  private nonisolated(unsafe) var missing = AudioGapTracker()
  private nonisolated(unsafe) var stream = 0

  /// The capacity of the ring in seconds.
  ///
  /// It must exceed the longest time for which a reader holds the lock.
  private static let longestRead = 1

  /// Creates the tap of an audio connection, or returns nil for a video connection.
  ///
  /// - Parameters:
  ///   - connection: The audio connection.
  ///   - seconds: The length of the history, at least one second.
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  package convenience init?(
    _ connection: CaptureConnection, seconds: Int
  ) throws(MediaError) {
    guard connection.mediaType == .audio, let format = connection.audioFormat else { return nil }
    try self.init(format, gate: connection.gate, seconds: seconds)
  }

  init(_ format: AudioFormat, gate: ConnectionGate = ConnectionGate(), seconds: Int)
    throws(MediaError)
  {
    (self.format, self.gate) = (format, gate)
    meter = LevelMeter(format)
    let blockSize = AudioCaptureLoop.blockCapacity(format) * format.bytesPerSample
    ring = try AudioRing(capacity: 100 * Self.longestRead, blockSize: blockSize)
    let seconds = max(1, seconds)
    // Blocks are usually 10 ms long, which is 100 per second. The history has entries for 400
    // blocks per second, so that it covers the requested time even with blocks of 2.5 ms.
    history = Mutex(
      AudioHistory(
        byteCount: max(blockSize, seconds * format.sampleRate * format.bytesPerSample),
        blockCount: 400 * seconds))
  }

  /// The level of each channel over the last 300 ms.
  ///
  /// After the stream has stopped, all levels are silence.
  package var levels: [AudioLevel] { meter.levels }

  /// Whether the stream has ended.
  ///
  /// A restart of the device makes the value false again.
  package var hasEnded: Bool { isOver.load(ordering: .acquiring) }

  /// Whether this tap receives the audio of a connection.
  package func isFeed(of connection: CaptureConnection) -> Bool { connection.gate === gate }

  // MARK: - The capture thread

  package func take(_ block: AudioBlock) {
    guard block.nanoseconds <= lastTime.load(ordering: .relaxed) else {
      if !hasEnded { end() }
      return
    }
    isOver.store(false, ordering: .releasing)
    guard gate.isOpen.load(ordering: .relaxed) else { return missing.reset() }
    meter.measure(block.bytes, sampleCount: block.sampleCount)
    if ring.push(block, gap: missing.gap(before: block), stream: stream) {
      missing.didPass(block)
    } else {
      missing.didRefuse(block)
    }
    _ = history.withLockIfAvailable { drainRing(into: &$0) }
    wakeReaders()
  }

  package func end() {
    missing.reset()
    meter.reset()
    stream += 1
    isOver.store(true, ordering: .releasing)
    wakeReaders()
  }

  /// Ends this stream at the first block that begins after a time.
  ///
  /// That block and later ones are ignored. The time is in nanoseconds of the capture clock.
  package func end(afterNanoseconds time: Int64) { lastTime.store(time, ordering: .relaxed) }

  private func wakeReaders() {
    for _ in 0..<waiting.load(ordering: .acquiring) { wake.signal() }
  }

  /// Moves the ring's blocks to the history.
  ///
  /// Call this with the lock held.
  private func drainRing(into history: inout AudioHistory) {
    while ring.popFirst({ entry, bytes in history.append(entry, bytes) }) {}
  }

  // MARK: - Readers

  /// A reader's position in the history.
  package struct Cursor: Sendable {
    fileprivate var number: Int
    /// The stream of the last block that was read, and the index of the sample that should follow
    /// this block.
    ///
    /// Nil before a block was read.
    fileprivate var due: (stream: Int, position: Int64)?
  }

  /// A block of audio with its time.
  package struct Piece: Sendable {
    /// The capture time of the first sample, in nanoseconds of the capture clock.
    package var nanoseconds: Int64
    /// The reason why this block does not directly continue the previous block.
    ///
    /// Nil if it does continue that block, and for the first block that a cursor reads.
    package var interruption: AudioInterruption?
    /// The samples of each channel, from -1 to 1.
    package var channels: [[Float]]

    package init(
      nanoseconds: Int64, interruption: AudioInterruption? = nil, channels: [[Float]]
    ) {
      (self.nanoseconds, self.interruption, self.channels) = (nanoseconds, interruption, channels)
    }

    /// The number of samples per channel.
    package var sampleCount: Int { channels.first?.count ?? 0 }
  }

  /// A cursor at the first block that ends at or after a time, in nanoseconds of the capture clock.
  package func cursor(atNanoseconds nanoseconds: Int64) -> Cursor {
    history.withLock { history in
      drainRing(into: &history)
      var number = history.oldest
      while let entry = history.entry(number),
        entry.nanoseconds &+ duration(of: entry.sampleCount) < nanoseconds
      {
        number += 1
      }
      return Cursor(number: number)
    }
  }

  /// The duration of a number of samples at the nominal rate, in nanoseconds, rounded up.
  private func duration(of sampleCount: Int) -> Int64 {
    let rate = Int64(format.sampleRate)
    return (Int64(sampleCount) * 1_000_000_000 + rate - 1) / rate
  }

  /// Returns the block at a cursor and advances the cursor, or returns nil if no new block has
  /// arrived.
  package func read(_ cursor: inout Cursor) -> Piece? {
    var found: (entry: AudioRing.Entry, bytes: [UInt8], isLate: Bool)?
    let number = cursor.number
    cursor.number = history.withLock { history in
      drainRing(into: &history)
      let offset = max(number, history.oldest)
      guard let entry = history.entry(offset) else { return offset }
      found = (entry, history.bytes(offset), offset > number)
      return offset + 1
    }
    guard let found else { return nil }
    let entry = found.entry
    var piece = Piece(nanoseconds: entry.nanoseconds, channels: channels(of: found.bytes))
    if let due = cursor.due {
      piece.interruption =
        if entry.stream != due.stream {
          .restart
        } else if entry.position != due.position, found.isLate {
          .missing(.outOfBuffers)
        } else if let gap = entry.gap {
          .missing(gap.cause)
        } else if entry.position != due.position {
          .switchedOff
        } else {
          nil
        }
    }
    cursor.due = (entry.stream, entry.position + Int64(entry.sampleCount))
    return piece
  }

  /// Blocks until a block is available, the stream ends, or the timeout expires.
  ///
  /// - Returns: Whether a block is available.
  package func wait(for cursor: Cursor, milliseconds: Int) -> Bool {
    waiting.wrappingAdd(1, ordering: .acquiringAndReleasing)
    defer { waiting.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
    let deadline = DispatchTime.now() + .milliseconds(milliseconds)
    while true {
      // `hasEnded` is read before the ring is drained. If it is true, the ring and the history
      // already contain all blocks of the stream.
      let isOver = hasEnded
      let isThere = history.withLock { history in
        drainRing(into: &history)
        return cursor.number < history.next
      }
      if isThere || isOver { return isThere }
      if wake.wait(timeout: deadline) == .timedOut { return false }
    }
  }

  private func channels(of bytes: [UInt8]) -> [[Float]] {
    bytes.withUnsafeBytes { bytes in
      (0..<format.channelCount).map { format.samples(ofChannel: $0, in: bytes) }
    }
  }
}

/// The reason why an audio block does not directly continue the previous block.
package enum AudioInterruption: Hashable, Sendable {
  /// Samples were lost.
  case missing(AudioGap.Cause)
  /// The stream stopped and started again between the two blocks.
  case restart
  /// The connection was disabled between the two blocks.
  case switchedOff
}

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
