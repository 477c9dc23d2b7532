// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
import Synchronization

/// Brings a growing file to the disk, on a thread of its own: whoever writes never waits for it.
///
/// What the power may cost is what was written since the last time it began to, so it begins again
/// 0.3 s after it was done. It also keeps room reserved ahead of the file's end, so that the file
/// lies in few pieces and no write has to look for room.
final class DiskSync: Sendable {
  private final class State: Sendable {
    let written = Atomic<Int64>(0)
    let synced = Atomic<Int64>(0)
    let failure = Atomic<Int32>(0)
    let isStopping = Atomic<Bool>(false)
    let signal = DispatchSemaphore(value: 0)
  }

  private static let pause = DispatchTimeInterval.milliseconds(300)
  /// Room that is reserved at a time, and how near the end of it the next is.
  private static let reservedBytes: Int64 = 64 << 20

  private let file: OpenFile
  private let state = State()
  private let thread: Mutex<BlockingThread?>

  /// Starts to watch over a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - reservesSpace: Whether room is reserved ahead of its end.
  /// - Throws: `SystemError` where the system has no thread left.
  init(_ file: OpenFile, reservesSpace: Bool) throws(SystemError) {
    self.file = file
    let state = state
    thread = Mutex(try BlockingThread { Self.run(file, state, reservesSpace) })
  }

  deinit { stop() }

  /// Bytes of the file that are on the disk for sure.
  var syncedBytes: Int64 { state.synced.load(ordering: .acquiring) }

  /// Says how far the file is written.
  func note(writtenBytes: Int64) {
    // The first time at once: then the first journal is there before its fragment has a head.
    if state.written.exchange(writtenBytes, ordering: .acquiringAndReleasing) == 0 {
      state.signal.signal()
    }
  }

  /// Asks what became of what was written so far.
  ///
  /// - Throws: `SystemError` for "write to" where the disk refused it.
  func check() throws(SystemError) {
    let failure = state.failure.load(ordering: .relaxed)
    if failure != 0 { throw SystemError("write to", file.path, failure) }
  }

  /// Ends it, after what it is at.
  func stop() {
    guard let thread = thread.withLock({ $0.take() }) else { return }
    state.isStopping.store(true, ordering: .releasing)
    state.signal.signal()
    thread.join()
  }

  private static func run(_ open: OpenFile, _ state: State, _ reservesSpace: Bool) {
    let file = RandomAccessFile(open)
    var canReserve = reservesSpace && !file.isInMemory
    var reserved: Int64 = 0
    var hasName = false
    while true {
      _ = state.signal.wait(timeout: .now() + pause)
      if state.isStopping.load(ordering: .acquiring) { return }
      let written = state.written.load(ordering: .acquiring)
      if canReserve, written > reserved - reservedBytes / 2 {
        let start = max(written, reserved)
        canReserve = file.reserve(reservedBytes, from: start)
        reserved = start + reservedBytes
      }
      guard written > state.synced.load(ordering: .relaxed) else { continue }
      do throws(SystemError) { try file.sync() } catch {
        state.failure.store(error.errorNumber, ordering: .relaxed)
        return
      }
      if !hasName { file.syncName() }
      hasName = true
      state.synced.store(written, ordering: .releasing)
    }
  }
}
