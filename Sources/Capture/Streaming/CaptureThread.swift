// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// What a capture thread does.
protocol CaptureWork {
  /// Switches the stream on.
  ///
  /// - Throws: `MediaError` as the device says; the sinks were told of the end then.
  mutating func start() throws(MediaError)

  /// Captures until the end, and switches the stream off.
  mutating func run() -> CaptureEnd
}

/// A thread that captures from one source: of real-time priority where that is allowed, unless the
/// source waits.
package final class CaptureThread: Sendable {
  private struct Outcome {
    var startError: MediaError?
    var end = CaptureEnd()
  }

  /// What the thread is to do, once.
  private struct Job: Sendable {
    let makeWork: @Sendable () -> any CaptureWork
    let whenEnded: @Sendable (CaptureEnd) -> Void
  }

  private final class Progress: Sendable {
    let job: Mutex<Job?>
    let outcome = Mutex(Outcome())
    let go = DispatchSemaphore(value: 0)
    let isStarted = DispatchSemaphore(value: 0)
    let isOver = DispatchSemaphore(value: 0)

    init(_ job: Job) { self.job = Mutex(job) }

    /// Does the job, and releases all that it held: a device that only one may have is free
    /// when others learn of the end.
    ///
    /// - Returns: Whether the stream was on.
    func perform() -> Bool {
      guard let job = job.withLock({ $0.take() }) else { return false }
      var work = job.makeWork()
      do throws(MediaError) { try work.start() } catch {
        outcome.withLock { $0.startError = error }
        return false
      }
      isStarted.signal()
      let end = work.run()
      outcome.withLock { $0.end = end }
      job.whenEnded(end)
      return true
    }
  }

  private let progress: Progress

  /// Makes the thread, which waits for ``begin()``.
  ///
  /// - Parameters:
  ///   - waits: Whether the source waits for its takers: then none of them is to wait for it.
  ///   - makeWork: Called on the thread when it begins.
  ///   - whenEnded: Called on the thread when a stream that was on is off.
  /// - Throws: `MediaError` with `.outOfMemory` when there is no thread to be had.
  init(
    waits: Bool, _ makeWork: @escaping @Sendable () -> any CaptureWork,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void
  ) throws(MediaError) {
    let progress = Progress(Job(makeWork: makeWork, whenEnded: whenEnded))
    self.progress = progress
    try BlockingThread.started(urgency: waits ? .ordinary : .realTime) {
      progress.go.wait()
      if !progress.perform() { progress.isStarted.signal() }
      progress.isOver.signal()
    }.detach()
  }

  /// Switches the stream on; to be called once.
  ///
  /// - Throws: `MediaError` as the device says; the sinks were told of the end then.
  package func begin() throws(MediaError) {
    progress.go.signal()
    progress.isStarted.wait()
    if let error = progress.outcome.withLock({ $0.startError }) { throw error }
  }

  /// Ends the thread that waits for ``begin()``, which then is not to be called.
  func cancel() {
    progress.job.withLock { $0 = nil }
    progress.go.signal()
  }

  /// Waits for the capture to end, and tells what it knows.
  @discardableResult
  package func waitUntilEnded() -> CaptureEnd {
    progress.isOver.wait()
    progress.isOver.signal()  // Lets later callers pass, too.
    return progress.outcome.withLock { $0.end }
  }
}
