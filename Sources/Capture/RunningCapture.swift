// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A session's capture thread while it runs.
package final class RunningCapture: Sendable {
  private let thread: PlatformThread
  private let result: ResultBox

  private final class ResultBox: Sendable {
    let end = Mutex(CaptureEnd())
  }

  /// Starts capturing into a queue.
  ///
  /// - Throws: `CaptureError` with `.outOfMemory` when there is no thread to be had.
  package init(
    session: CaptureSession, limit: CaptureLimit, queue: FrameQueue, control: CaptureControl
  ) throws(CaptureError) {
    let result = ResultBox()
    self.result = result
    thread = try PlatformThread(urgency: .realTime) {
      var loop = CaptureLoop(
        driver: session.driver, frameRate: session.negotiatedFrameRate,
        wholeness: session.delivery.wholeness, limit: limit, queue: queue,
        control: control)
      let end = loop.run()
      result.end.withLock { $0 = end }
    }
  }

  /// Waits for the capture to end and tells what it knows; to be called once.
  package func end() -> CaptureEnd {
    thread.join()
    return result.end.withLock { $0 }
  }
}
