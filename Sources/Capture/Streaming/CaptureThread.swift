// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankLinuxSystem
package import OvercrankMediaCore
import Synchronization

/// The work of a capture thread.
protocol CaptureWork {
  /// Starts the stream.
  ///
  /// - Throws: `MediaError` from the device. The sinks have not ended then.
  mutating func start() throws(MediaError)

  /// Captures until the end, then stops the stream.
  mutating func run() -> CaptureEnd
}

/// A thread that captures from one source.
///
/// The thread has real-time priority if permitted. If the source waits for its consumers, the
/// thread has ordinary priority.
package final class CaptureThread: Sendable {
  private struct Outcome {
    var startError: MediaError?
    var end = CaptureEnd()
  }

  /// The work of the capture thread, which runs once.
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

    /// Runs the work and releases its resources.
    ///
    /// The device is released before other threads see the end of the capture. A thread that waits
    /// for the end can therefore open the device again.
    ///
    /// - Returns: Whether the stream was started.
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

  /// Creates the thread, which waits for ``begin()``.
  ///
  /// - Parameters:
  ///   - waits: Whether the source waits for its consumers, or makes its frames on the thread. The
  ///     thread then has ordinary priority. With real-time priority it would keep other threads from
  ///     running.
  ///   - makeWork: Called on the thread when it begins.
  ///   - whenEnded: Called on the thread after a running stream has stopped.
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
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

  /// Ends a thread that still waits for ``begin()``.
  deinit { cancel() }

  /// Starts the stream.
  ///
  /// Call this method at most once.
  ///
  /// - Throws: `MediaError` from the device. The sinks have not ended then.
  package func begin() throws(MediaError) {
    progress.go.signal()
    progress.isStarted.wait()
    if let error = progress.outcome.withLock({ $0.startError }) { throw error }
  }

  /// Ends a thread that waits for ``begin()``.
  ///
  /// Do not call ``begin()`` afterwards.
  func cancel() {
    progress.job.withLock { $0 = nil }
    progress.go.signal()
  }

  /// Blocks until the capture ends and returns its final state.
  @discardableResult
  package func waitUntilEnded() -> CaptureEnd {
    progress.isOver.wait()
    progress.isOver.signal()  // The signal is repeated for later callers.
    return progress.outcome.withLock { $0.end }
  }
}

extension CaptureThread {
  /// Creates the capture thread of a camera, which waits for ``begin()``.
  ///
  /// - Parameters:
  ///   - input: The open device.
  ///   - sinks: The sinks that receive the frames.
  ///   - control: The control that stops the capture.
  ///   - whenEnded: Called on the capture thread after a running stream has stopped.
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  package convenience init(
    of input: DeviceInput, into sinks: SinkList<any FrameSink>, control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void = { _ in }
  ) throws(MediaError) {
    try self.init(
      waits: input.driver.waitsForTakers || input.driver.derivesFrames,
      {
        CaptureLoop(
          pool: input.pool, frameRate: input.negotiatedFrameRate,
          integrityCheck: input.delivery.integrityCheck, control: control, sinkList: sinks)
      }, whenEnded: whenEnded)
  }
}
