// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Dispatch
import Synchronization
package import SystemPackage

/// Writes lines to a descriptor on a thread of its own.
///
/// A terminal or a pipe that is not read blocks this thread, and not the callers. O_NONBLOCK would not
/// do: it belongs to the open terminal or pipe, which other programs share. May be used from any
/// thread.
package final class BackgroundWriter: Sendable {
  private struct Line {
    let bytes: [UInt8]
    let isProgress: Bool
  }

  private struct State {
    var lines: Deque<Line> = []
    /// The bytes of the lines that wait.
    var byteCount = 0
    var droppedCount = 0
    /// The lines that left the thread, written or not.
    var endedCount = 0
    var isWriting = false
    var hasThread = false
    /// Whether lines are written by their caller, because no thread can be had.
    var isDirect = false
    /// The callers of ``drain(withinMilliseconds:)`` that wait for the next line to end.
    var waiterCount = 0
    /// The value of `endedCount` at which a caller stopped to wait.
    var stuckCount: Int?
  }

  private let descriptor: FileDescriptor
  private let capacity: Int
  private let state = Mutex(State())
  private let hasLines = DispatchSemaphore(value: 0)
  private let hasEnded = DispatchSemaphore(value: 0)

  /// Uses a descriptor, which must stay open.
  ///
  /// - Parameters:
  ///   - descriptor: The descriptor.
  ///   - capacity: The greatest number of bytes that wait for the reader. Further lines are dropped.
  package init(_ descriptor: FileDescriptor, capacity: Int = 1 << 18) {
    (self.descriptor, self.capacity) = (descriptor, capacity)
  }

  /// The number of lines that were dropped because the reader did not read.
  package var droppedCount: Int { state.withLock { $0.droppedCount } }

  /// Lets each caller write its lines itself, and blocks while the reader does not read.
  ///
  /// For a process that cannot start threads.
  package func writeDirectly() { state.withLock { $0.isDirect = true } }

  /// Writes a line after all earlier ones, without waiting for the reader.
  ///
  /// - Parameters:
  ///   - bytes: The line, with its end.
  ///   - isProgress: Whether the line replaces a line of progress that waits as the last one.
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
    do throws(SystemError) {
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
      // A line that was replaced or dropped has signaled too.
      guard let line else { continue }
      // A failure is ignored, because it could not be reported.
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

  /// Waits until all lines are written, as long as the reader takes some.
  ///
  /// - Parameter milliseconds: The time without a line taken after which the wait ends. If an earlier
  ///   wait has ended so and no line was taken since, a tenth of it.
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
