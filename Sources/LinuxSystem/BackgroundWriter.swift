// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Dispatch
import OvercrankMediaCore
import Synchronization
package import SystemPackage

/// Writes lines to a descriptor on a background thread.
///
/// If nothing reads the terminal or pipe, only this thread blocks, not the callers. O_NONBLOCK is
/// no alternative: it would also apply to other programs that share the open terminal or pipe. All
/// calls may come from any thread.
package final class BackgroundWriter: Sendable {
  private struct Line {
    let bytes: [UInt8]
    let isProgress: Bool
  }

  private struct State {
    var lines: Deque<Line> = []
    /// The number of bytes of the lines that wait to be written.
    var byteCount = 0
    var droppedCount = 0
    /// The number of lines that the thread has finished, including lines whose write failed.
    var endedCount = 0
    var isWriting = false
    var hasThread = false
    /// Whether each caller writes its own lines, because the process cannot start threads.
    var isDirect = false
    /// The number of callers of ``drain(withinMilliseconds:)`` that wait for the thread to finish a
    /// line.
    var waiterCount = 0
    /// The value of `endedCount` when a caller last gave up waiting, or nil if none has.
    var stuckCount: Int?
  }

  private let descriptor: FileDescriptor
  private let capacity: Int
  private let state = Mutex(State())
  private let hasLines = DispatchSemaphore(value: 0)
  private let hasEnded = DispatchSemaphore(value: 0)

  /// Creates a writer for a descriptor, which must stay open.
  ///
  /// - Parameters:
  ///   - descriptor: The descriptor.
  ///   - capacity: The greatest number of bytes that wait to be written. Further lines are dropped.
  package init(_ descriptor: FileDescriptor, capacity: Int = 1 << 18) {
    (self.descriptor, self.capacity) = (descriptor, capacity)
  }

  /// The number of lines that were dropped because nothing read the terminal or pipe.
  package var droppedCount: Int { state.withLock { $0.droppedCount } }

  /// Makes each caller write its own lines.
  ///
  /// Calls of ``write(_:isProgress:)`` then block while nothing reads the terminal or pipe. For a
  /// process that cannot start threads.
  package func writeDirectly() { state.withLock { $0.isDirect = true } }

  /// Queues a line to be written after all earlier ones, without waiting for the reader of the
  /// terminal or pipe.
  ///
  /// - Parameters:
  ///   - bytes: The line, with its line break.
  ///   - isProgress: Whether the line reports progress. It then replaces the last waiting line if
  ///     that reports progress too.
  package func write(_ bytes: [UInt8], isProgress: Bool = false) {
    let isDirect = state.withLock { state in
      if !state.isDirect, !state.hasThread { start(&state) }
      guard !state.isDirect else { return true }
      if isProgress, let last = state.lines.last, last.isProgress {
        state.lines.removeLast()
        state.byteCount -= last.bytes.count
        state.droppedCount += 1
      }
      guard state.lines.isEmpty || state.byteCount + bytes.count <= capacity else {
        state.droppedCount += 1
        return false
      }
      state.lines.append(Line(bytes: bytes, isProgress: isProgress))
      state.byteCount += bytes.count
      return false
    }
    if isDirect {
      _ = descriptor.writeFully(bytes)
    } else {
      hasLines.signal()
    }
  }

  private func start(_ state: inout State) {
    do throws(CallFailure) {
      try BlockingThread { [self] in run() }.detach()
      state.hasThread = true
    } catch { state.isDirect = true }
  }

  private func run() {
    while true {
      hasLines.wait()
      let line = state.withLock { state in
        let line = state.lines.popFirst()
        state.byteCount -= line?.bytes.count ?? 0
        state.isWriting = line != nil
        return line
      }
      // The semaphore was also signaled for lines that were later replaced or dropped, so the queue
      // may be empty.
      guard let line else { continue }
      // A failed write is ignored, because no caller is left to report it to.
      _ = descriptor.writeFully(line.bytes)
      let waiterCount = state.withLock { state in
        state.isWriting = false
        state.endedCount += 1
        defer { state.waiterCount = 0 }
        return state.waiterCount
      }
      for _ in 0..<waiterCount { hasEnded.signal() }
    }
  }

  /// Waits until all lines are written, or until the reader has stopped reading.
  ///
  /// - Parameter milliseconds: The longest time without a written line, after which the wait ends.
  ///   If the previous wait ended like this and no line was written since, the wait is a tenth as
  ///   long.
  /// - Returns: Whether all lines were written.
  @discardableResult
  package func drain(withinMilliseconds milliseconds: Int = 1_000) -> Bool {
    while true {
      let found = state.withLock { state -> (count: Int, isStuck: Bool)? in
        if state.lines.isEmpty, !state.isWriting { return nil }
        state.waiterCount += 1
        return (state.endedCount, state.stuckCount == state.endedCount)
      }
      guard let (count, isStuck) = found else { return true }
      let time = isStuck ? milliseconds / 10 : milliseconds
      guard hasEnded.wait(timeout: .now() + .milliseconds(time)) == .timedOut else { continue }
      let isTaken = state.withLock { state in
        if state.endedCount == count { state.stuckCount = count }
        return state.endedCount != count
      }
      if !isTaken { return false }
    }
  }
}
