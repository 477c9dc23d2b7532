// SPDX-License-Identifier: Apache-2.0

import Dispatch
package import OvercrankDeviceDiscovery
package import OvercrankMediaCore
import Synchronization

/// The last seconds of what an input hears, for takes to read from any time on: also from before
/// they began.
///
/// ```
///   capture thread ─ take ─▶ ring ─▶ history ◀─ read ─ any number of takes
/// ```
///
/// The capture thread neither waits nor asks for memory: it leaves each block in a ring, and moves
/// what lies there into the history unless someone just reads that, who then does it. What the
/// history has dropped is lost to a reader that comes too late, and to nobody else.
package final class AudioTap: AudioSink {
  /// How the samples are given.
  package let format: AudioFormat
  private let gate: ConnectionGate
  private let meter: LevelMeter
  private let ring: AudioRing
  private let history: Mutex<AudioHistory>
  private let isOver = Atomic<Bool>(false)
  private let lastTime = Atomic<Int64>(.max)
  private let waiting = Atomic<Int>(0)
  private let wake = DispatchSemaphore(value: 0)
  // The capture thread's own; the next stream's begins when the last one's is gone.
  private nonisolated(unsafe) var missing = AudioGapTracker()
  private nonisolated(unsafe) var stream = 0

  /// Seconds of sound that may wait between the capture thread and the history: nobody reads a
  /// block for so long.
  private static let longestRead = 1

  /// Makes the feed of a connection, or nil where that carries no sound.
  ///
  /// - Parameters:
  ///   - connection: What the sound comes over; another one's does not come in here.
  ///   - seconds: How much is kept; at least one.
  /// - Throws: `MediaError` with `.outOfMemory` when the system refuses the memory.
  package convenience init?(
    _ connection: CaptureConnection, seconds: Int
  ) throws(MediaError) {
    guard connection.mediaType == .audio, let format = connection.audioFormat else { return nil }
    try self.init(format, gate: connection.gate, seconds: seconds)
  }

  init(_ format: AudioFormat, gate: ConnectionGate = ConnectionGate(), seconds: Int)
    throws(MediaError)
  {
    self.format = format
    self.gate = gate
    meter = LevelMeter(format)
    let blockSize = AudioCaptureLoop.blockCapacity(format) * format.bytesPerSample
    ring = try AudioRing(capacity: 100 * Self.longestRead, blockSize: blockSize)
    let seconds = max(1, seconds)
    // Blocks are of some 10 ms; with many more of them the memory would be more note than sound.
    history = Mutex(
      AudioHistory(
        byteCount: max(blockSize, seconds * format.sampleRate * format.bytesPerSample),
        blockCount: 400 * seconds))
  }

  /// How loud each channel is now, over the last 300 ms; silence once the stream is off.
  package var levels: [AudioLevel] { meter.levels }

  /// Whether no sound comes any more, unless the device is started again.
  package var hasEnded: Bool { isOver.load(ordering: .acquiring) }

  /// Whether the feed is that of a connection.
  package func isFeed(of connection: CaptureConnection) -> Bool { connection.gate === gate }

  // MARK: - The capture thread

  package func take(_ block: AudioBlock) {
    guard block.nanoseconds <= lastTime.load(ordering: .relaxed) else { return end() }
    isOver.store(false, ordering: .releasing)
    guard gate.isOpen.load(ordering: .relaxed) else { return missing.reset() }
    meter.measure(block.bytes, sampleCount: block.sampleCount)
    if ring.push(block, gap: missing.gap(before: block), stream: stream) {
      missing.didPass(block)
    } else {
      missing.didRefuse(block)
    }
    _ = history.withLockIfAvailable { settle(&$0) }
    wakeReaders()
  }

  package func end() {
    missing.reset()
    meter.reset()
    stream += 1
    isOver.store(true, ordering: .releasing)
    wakeReaders()
  }

  /// Takes nothing that is heard after a time of the capture clock.
  package func end(afterNanoseconds time: Int64) { lastTime.store(time, ordering: .relaxed) }

  private func wakeReaders() {
    for _ in 0..<waiting.load(ordering: .acquiring) { wake.signal() }
  }

  /// Moves what lies in the ring into the history; only who has the lock may.
  private func settle(_ history: inout AudioHistory) {
    while ring.popFirst({ entry, bytes in history.append(entry, bytes) }) {}
  }

  // MARK: - Readers

  /// A reader's place in the sound.
  package struct Cursor: Sendable {
    fileprivate var number: Int
    /// The stream and the sample that come next if nothing is missing; nil before the first.
    fileprivate var due: (stream: Int, position: Int64)?
  }

  /// A block as it was heard.
  package struct Piece: Sendable {
    /// When its first sample was heard, in nanoseconds of the capture clock.
    package var nanoseconds: Int64
    /// Why it does not follow the piece read before; nil where it does, and for the first.
    package var interruption: AudioInterruption?
    /// The samples of each channel, between -1 and 1.
    package var channels: [[Float]]

    package init(
      nanoseconds: Int64, interruption: AudioInterruption? = nil, channels: [[Float]]
    ) {
      self.nanoseconds = nanoseconds
      self.interruption = interruption
      self.channels = channels
    }

    /// Samples of each channel.
    package var sampleCount: Int { channels.first?.count ?? 0 }
  }

  /// A place to read from: the first block kept that is heard at a time or later, at least in
  /// part.
  ///
  /// The time is of the capture clock.
  package func cursor(atNanoseconds nanoseconds: Int64) -> Cursor {
    history.withLock { history in
      settle(&history)
      var number = history.oldest
      while let entry = history.entry(number),
        entry.nanoseconds &+ duration(of: entry.sampleCount) < nanoseconds
      {
        number += 1
      }
      return Cursor(number: number)
    }
  }

  /// How long some samples last by the label of the card, in nanoseconds, rounded up.
  private func duration(of sampleCount: Int) -> Int64 {
    let rate = Int64(format.sampleRate)
    return (Int64(sampleCount) * 1_000_000_000 + rate - 1) / rate
  }

  /// The next block, or nil where there is none yet.
  package func read(_ cursor: inout Cursor) -> Piece? {
    var found: (entry: AudioRing.Entry, bytes: [UInt8], isLate: Bool)?
    let number = cursor.number
    cursor.number = history.withLock { history in
      settle(&history)
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

  /// Waits until there is a block to read, no more sound comes, or time is up.
  ///
  /// - Returns: Whether there is one.
  package func wait(for cursor: Cursor, milliseconds: Int) -> Bool {
    waiting.wrappingAdd(1, ordering: .acquiringAndReleasing)
    defer { waiting.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
    let deadline = DispatchTime.now() + .milliseconds(milliseconds)
    while true {
      let isThere = history.withLock { history in
        settle(&history)
        return cursor.number < history.next
      }
      if isThere || hasEnded { return isThere }
      if wake.wait(timeout: deadline) == .timedOut { return false }
    }
  }

  private func channels(of bytes: [UInt8]) -> [[Float]] {
    bytes.withUnsafeBytes { bytes in
      (0..<format.channelCount).map { format.samples(ofChannel: $0, in: bytes) }
    }
  }
}

/// Why some sound does not follow that before it.
package enum AudioInterruption: Hashable, Sendable {
  /// Samples were lost on the way.
  case missing(AudioGap.Cause)
  /// The stream was off, and began anew.
  case restart
  /// The connection carried nothing for a while.
  case switchedOff
}
