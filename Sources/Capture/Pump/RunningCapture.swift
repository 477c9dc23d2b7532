// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Synchronization

/// The capture thread of an input while it runs.
package final class RunningCapture: Sendable {
  private struct Outcome {
    var startError: CaptureError?
    var isCancelled = false
    var end = CaptureEnd()
  }

  private final class Progress: Sendable {
    let outcome = Mutex(Outcome())
    let go = DispatchSemaphore(value: 0)
    let isStarted = DispatchSemaphore(value: 0)
    let isOver = DispatchSemaphore(value: 0)
  }

  private let progress: Progress
  private let switchboard: SinkSwitchboard

  /// Makes the thread, which waits for ``begin()``.
  ///
  /// - Parameters:
  ///   - input: The device and its mode.
  ///   - sinks: Where frames go.
  ///   - control: Ends the capture.
  ///   - whenEnded: Called on the capture thread when a stream that was on is off.
  /// - Throws: `CaptureError` with `.outOfMemory` when there is no thread to be had.
  package init(
    input: DeviceInput, sinks: [any FrameSink], control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void = { _ in }
  ) throws(CaptureError) {
    let (progress, switchboard) = (Progress(), SinkSwitchboard(sinks))
    self.progress = progress
    self.switchboard = switchboard
    try PlatformThread(urgency: .realTime) {
      progress.go.wait()
      guard !progress.outcome.withLock({ $0.isCancelled }) else {
        progress.isOver.signal()
        return
      }
      var pump = CapturePump(
        loans: input.loans, frameRate: input.negotiatedFrameRate,
        wholeness: input.delivery.wholeness, control: control, switchboard: switchboard)
      do throws(CaptureError) { try pump.start() } catch {
        progress.outcome.withLock { $0.startError = error }
        progress.isStarted.signal()
        progress.isOver.signal()
        return
      }
      progress.isStarted.signal()
      let end = pump.run()
      progress.outcome.withLock { $0.end = end }
      whenEnded(end)
      progress.isOver.signal()
    }.detach()
  }

  /// Switches the stream on; to be called once.
  ///
  /// - Throws: `CaptureError` as the device says; the sinks were told of the end then.
  package func begin() throws(CaptureError) {
    progress.go.signal()
    progress.isStarted.wait()
    if let error = progress.outcome.withLock({ $0.startError }) { throw error }
  }

  /// Ends the thread that waits for ``begin()``, which then is not to be called.
  func cancel() {
    progress.outcome.withLock { $0.isCancelled = true }
    progress.go.signal()
  }

  /// Sends frames to other sinks from now on; false where the capture has ended.
  package func setSinks(_ sinks: [any FrameSink]) -> Bool { switchboard.set(sinks) }

  /// Waits for the capture to end, and tells what it knows.
  @discardableResult
  package func waitUntilEnded() -> CaptureEnd {
    progress.isOver.wait()
    progress.isOver.signal()  // Whoever asks again must see it too.
    return progress.outcome.withLock { $0.end }
  }
}

extension RunningCapture {
  /// Starts a take into a queue, for which alone the stream is on.
  package static func take(
    from input: DeviceInput, limit: CaptureLimit, queue: FrameQueue, control: CaptureControl
  ) throws(CaptureError) -> TakeSink {
    let take = TakeSink(limit: limit, queue: queue, control: control, endsCapture: true)
    try RunningCapture(input: input, sinks: [take], control: control).begin()
    return take
  }
}
