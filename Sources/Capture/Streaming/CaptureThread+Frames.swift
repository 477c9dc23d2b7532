// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

extension CaptureThread {
  /// Makes the capture thread of a camera, which waits for ``begin()``.
  ///
  /// - Parameters:
  ///   - input: The device and its mode.
  ///   - sinks: Where frames go.
  ///   - control: Ends the capture.
  ///   - whenEnded: Called on the capture thread when a stream that was on is off.
  /// - Throws: `MediaError` with `.outOfMemory` when there is no thread to be had.
  package convenience init(
    of input: DeviceInput, into sinks: SinkList<any FrameSink>, control: CaptureControl,
    whenEnded: @escaping @Sendable (CaptureEnd) -> Void = { _ in }
  ) throws(MediaError) {
    try self.init(
      waits: input.driver.waitsForTakers,
      {
        CaptureLoop(
          pool: input.pool, frameRate: input.negotiatedFrameRate,
          integrityCheck: input.delivery.integrityCheck, control: control, sinkList: sinks)
      }, whenEnded: whenEnded)
  }

  /// Starts a take into a queue, for which alone the stream is on.
  ///
  /// - Returns: The take.
  /// - Throws: `MediaError` as the device says.
  package static func take(
    from input: DeviceInput, limit: CaptureLimit, queue: FrameQueue, control: CaptureControl
  ) throws(MediaError) -> TakeSink {
    let take = TakeSink(limit: limit, queue: queue, control: control, endsCapture: true)
    try CaptureThread(of: input, into: SinkList([take]), control: control).begin()
    return take
  }
}
