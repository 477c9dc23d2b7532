// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// Syncs a growing file to the disk on a separate thread, so that writers never wait for the disk.
///
/// A power failure loses only the data written since the start of the last sync. A sync starts 0.3
/// s after the previous one ended. Disk space is reserved beyond the end of the file. This limits
/// fragmentation and keeps writes fast.
final class DiskSync: Sendable {
  private final class State: Sendable {
    let written = Atomic<Int64>(0)
    let synced = Atomic<Int64>(0)
    let failure = Atomic<Int32>(0)
    let isStopping = Atomic<Bool>(false)
    let signal = DispatchSemaphore(value: 0)
  }

  private static let pause = DispatchTimeInterval.milliseconds(300)
  /// The size in bytes of one reservation of disk space.
  ///
  /// When half of a reservation is used, the next one is made.
  private static let reservedBytes: Int64 = 64 << 20

  private let file: OpenFile
  private let state = State()
  private let thread: Mutex<BlockingThread?>

  /// Starts syncing a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - reservesSpace: Whether disk space is reserved beyond the end of the file.
  /// - Throws: `CallFailure` if the system cannot create a thread.
  init(_ file: OpenFile, reservesSpace: Bool) throws(CallFailure) {
    self.file = file
    let state = state
    thread = Mutex(try BlockingThread { Self.run(file, state, reservesSpace) })
  }

  deinit { stop() }

  /// The number of bytes of the file that are certainly on the disk.
  var syncedBytes: Int64 { state.synced.load(ordering: .acquiring) }

  /// Informs the thread of the number of bytes written so far.
  func note(writtenBytes: Int64) {
    // The first call starts a sync at once, so that the first journal is on the disk before its
    // fragment is complete.
    if state.written.exchange(writtenBytes, ordering: .acquiringAndReleasing) == 0 {
      state.signal.signal()
    }
  }

  /// Throws the error of an earlier sync, which occurred on the other thread.
  ///
  /// - Throws: `CallFailure` with the operation "write to" if a sync failed.
  func check() throws(CallFailure) {
    let failure = state.failure.load(ordering: .relaxed)
    if failure != 0 { throw CallFailure("write to", file.path, failure) }
  }

  /// Stops the thread.
  ///
  /// If a sync is running, waits until it ends.
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
      do throws(CallFailure) { try file.sync() } catch {
        state.failure.store(error.number, ordering: .relaxed)
        return
      }
      if !hasName { file.syncName() }
      hasName = true
      state.synced.store(written, ordering: .releasing)
    }
  }
}
