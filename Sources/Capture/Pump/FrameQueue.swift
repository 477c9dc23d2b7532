// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Glibc
import Synchronization

/// A frame in the queue between the capture thread and the writer, or a note that one arrived.
package struct QueuedFrame {
  /// What was seen of it.
  package var observation: FrameObservation
  /// The bytes, valid until the queue is told to release the frame; none where the frame is not
  /// in the queue but only noted.
  package var bytes: UnsafeRawBufferPointer
  /// The driver's buffer in which the bytes lie; nil where they are to be copied.
  package var loan: FrameLoans.Loan?
}

/// Frames in order of capture, copied once into memory that was reserved beforehand, or left in
/// the driver's buffers, which are given back when the frame has been taken.
///
/// One thread pushes and never waits: it shares two counters with the other thread, no lock.
/// One thread takes frames out. A full queue refuses the frame; room for notes about refused
/// frames is kept longer.
package final class FrameQueue: Sendable {
  private struct Record {
    /// Bytes of record and frame.
    ///
    /// First, because where a record would not fit before the end of the memory, a negative
    /// number stands here instead: skip that many.
    var totalBytes: Int
    var frame: QueuedFrame
  }

  /// Bytes that frames and their records may take.
  package let capacity: Int
  // Written between `head` and `tail + capacity` by the pusher, read between `tail` and `head`
  // by the taker; the counters' ordering hands the bytes over.
  private nonisolated(unsafe) let memory: UnsafeMutableRawPointer
  // Only the pusher's: where an empty queue was left for its beginning, until the taker follows.
  private nonisolated(unsafe) var restart: (position: Int, offset: Int)?
  private let head = Atomic<Int>(0)
  private let tail = Atomic<Int>(0)
  /// Where buffers on loan are given back; nil where every frame is copied.
  package let loans: FrameLoans?
  private let lent = Atomic<Int>(0)
  private let isClosed = Atomic<Bool>(false)
  private let signal = DispatchSemaphore(value: 0)
  // Whether the taker sleeps, or is about to.
  private let isTakerWaiting = Atomic<Bool>(false)
  // Only the pusher's: when and where it last looked whether the taker sleeps.
  private nonisolated(unsafe) var lastWake = (arrival: Int64.min, head: 0)
  /// How long frames may wait until the taker is woken, in microseconds of arrival: to wake a
  /// thread costs as much as to copy a picture, so fast cameras have it done for several frames.
  private static let wakeInterval: Int64 = 20_000
  /// How long the taker sleeps at most, for frames that none followed.
  private static let longestSleep = DispatchTimeInterval.milliseconds(50)
  private static let alignment = 64
  /// Room that only notes may take.
  private static let reserve = 512 << 10
  private static let recordBytes =
    (MemoryLayout<Record>.size + alignment - 1) / alignment * alignment

  /// Reserves a queue of about this many bytes.
  ///
  /// - Parameters:
  ///   - capacity: The bytes.
  ///   - loans: Where frames are lent from, if frames are to wait in the driver's own buffers.
  /// - Throws: `CaptureError` with `.outOfMemory` when the system refuses them.
  package init(capacity: Int, loans: FrameLoans? = nil) throws(CaptureError) {
    let rounded = max(1 << 20, (capacity + Self.reserve + 4_095) / 4_096 * 4_096)
    // Pages are taken only when they are first written: an idle queue costs nothing.
    guard
      let memory = mmap(
        nil, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
      memory != MAP_FAILED
    else {
      throw CaptureError(
        .outOfMemory, "could not reserve \(rounded / 1_048_576) MiB for the frame queue",
        hint: "close other programs or choose a smaller mode")
    }
    self.capacity = rounded
    self.memory = memory
    self.loans = loans
  }

  deinit {
    close()
    while withNextFrame({ _ in }) != nil {}
    munmap(memory, capacity)
  }

  /// Frames on loan that wait here, or are just being taken.
  package var lentCount: Int { lent.load(ordering: .acquiring) }

  /// Copies a frame in unless it is on loan, or answers false when there is no room.
  ///
  /// An empty queue has room for every frame of up to half its capacity, less a record; whether
  /// it has for a larger one depends on where the last one ended.
  package func push(_ frame: QueuedFrame) -> Bool {
    let copied = frame.loan == nil ? frame.bytes.count : 0
    let needed = Self.recordBytes + Self.aligned(copied)
    let head = head.load(ordering: .relaxed)
    let tail = tail.load(ordering: .acquiring)
    let offset = head % capacity
    if let mark = restart, tail > mark.position { restart = nil }
    // A record never wraps: what is left at the end is skipped when it is too short. So it is
    // when the queue is empty: the same few pages are used again, which the processor still has
    // at hand, and no more memory is taken than frames ever waited.
    let restarts =
      head == tail && offset >= max(needed, Self.restartDistance(needed, in: capacity))
    let skipped = restarts || capacity - offset < needed ? capacity - offset : 0
    let reserve = frame.observation.fate == .queued ? Self.reserve : 0
    if let mark = restart {
      // Until the taker has passed the mark of the restart, the memory from there on is not ours.
      guard offset + needed + reserve <= mark.offset else { return false }
    } else {
      let used = restarts ? 0 : head - tail + skipped
      guard used + needed + reserve <= capacity else { return false }
    }
    if restarts { restart = (head, offset) }
    if skipped > 0 { storeRecordEnd(at: offset, skipped) }
    let start = memory + (offset + skipped) % capacity
    var record = Record(totalBytes: needed, frame: frame)
    if frame.loan != nil {
      lent.wrappingAdd(1, ordering: .relaxed)
    } else {
      let payload = start + Self.recordBytes
      if let source = frame.bytes.baseAddress, copied > 0 {
        payload.copyMemory(from: source, byteCount: copied)
      }
      record.frame.bytes = UnsafeRawBufferPointer(start: payload, count: copied)
    }
    start.storeBytes(of: record, as: Record.self)
    self.head.store(head + skipped + needed, ordering: .sequentiallyConsistent)
    let isLate = frame.observation.arrival &- lastWake.arrival >= Self.wakeInterval
    if isLate || lastWake.arrival == .min || head - lastWake.head > capacity / 16 {
      lastWake = (frame.observation.arrival, head)
      wakeTaker()
    }
    return true
  }

  /// Wakes the taker if it sleeps; on the pusher's thread.
  package func wakeTaker() {
    if isTakerWaiting.exchange(false, ordering: .sequentiallyConsistent) { signal.signal() }
  }

  /// Says that no more frames will come.
  package func close() {
    isClosed.store(true, ordering: .sequentiallyConsistent)
    wakeTaker()
  }

  /// Waits for the next frame and shows it; nil once the queue is closed and empty.
  package func withNextFrame<Result, Failure: Error>(
    _ body: (QueuedFrame) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    while true {
      let tail = tail.load(ordering: .relaxed)
      if head.load(ordering: .acquiring) == tail {
        // Whatever was pushed before the queue was closed is seen by whoever sees it closed.
        let isClosed = isClosed.load(ordering: .acquiring)
        if head.load(ordering: .acquiring) == tail {
          if isClosed { return nil }
          sleep(at: tail)
          continue
        }
      }
      let skipped = skippedBytes(at: tail % capacity)
      // Told at once, since the pusher may be waiting for just this.
      if skipped > 0 { self.tail.store(tail + skipped, ordering: .releasing) }
      let start = memory + (tail + skipped) % capacity
      let record = start.load(as: Record.self)
      defer {
        if let loan = record.frame.loan {
          loans?.release(loan)
          lent.wrappingSubtract(1, ordering: .releasing)
        }
        self.tail.store(tail + skipped + record.totalBytes, ordering: .releasing)
      }
      return try body(record.frame)
    }
  }

  /// Sleeps until the pusher wakes the taker, if there is still nothing to take.
  private func sleep(at tail: Int) {
    isTakerWaiting.store(true, ordering: .sequentiallyConsistent)
    let isEmpty = head.load(ordering: .sequentiallyConsistent) == tail
    if isEmpty, !isClosed.load(ordering: .sequentiallyConsistent) {
      _ = signal.wait(timeout: .now() + Self.longestSleep)
    }
    isTakerWaiting.store(false, ordering: .relaxed)
  }

  /// Bytes in use, as a share of the capacity from 0 to 1, for display.
  package var fillLevel: Double {
    Double(head.load(ordering: .relaxed) - tail.load(ordering: .relaxed)) / Double(capacity)
  }

  /// How far an empty queue goes on before it starts again from the beginning: far enough that
  /// what lies before has room for the frames that come until the taker wakes up.
  private static func restartDistance(_ needed: Int, in capacity: Int) -> Int {
    min(max(8 << 20, 16 * needed), capacity / 2)
  }

  private static func aligned(_ count: Int) -> Int {
    (count + alignment - 1) / alignment * alignment
  }

  // Offsets are multiples of the alignment, so there is always room for the number.
  private func storeRecordEnd(at offset: Int, _ skipped: Int) {
    (memory + offset).storeBytes(of: -skipped, as: Int.self)
  }

  private func skippedBytes(at offset: Int) -> Int {
    let marker = (memory + offset).load(as: Int.self)
    return marker < 0 ? -marker : 0
  }
}
