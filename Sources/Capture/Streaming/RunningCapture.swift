// SPDX-License-Identifier: Apache-2.0

/// The capture thread of a camera while it runs.
package final class RunningCapture: Sendable {
  private let thread: CaptureThread
  private let switchboard: SinkList<any FrameSink>

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
    let switchboard = SinkList(sinks)
    self.switchboard = switchboard
    thread = try CaptureThread(
      waits: input.driver.waitsForTakers,
      {
        CaptureLoop(
          pool: input.pool, frameRate: input.negotiatedFrameRate,
          wholeness: input.delivery.wholeness, control: control, switchboard: switchboard)
      }, whenEnded: whenEnded)
  }

  /// Switches the stream on; to be called once.
  ///
  /// - Throws: `CaptureError` as the device says; the sinks were told of the end then.
  package func begin() throws(CaptureError) { try thread.begin() }

  /// Ends the thread that waits for ``begin()``, which then is not to be called.
  func cancel() { thread.cancel() }

  /// Sends frames to other sinks from now on; false where the capture has ended.
  package func setSinks(_ sinks: [any FrameSink]) -> Bool { switchboard.set(sinks) }

  /// Waits for the capture to end, and tells what it knows.
  @discardableResult
  package func waitUntilEnded() -> CaptureEnd { thread.waitUntilEnded() }
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
