// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

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
      waits: input.driver.waitsForTakers,
      {
        CaptureLoop(
          pool: input.pool, frameRate: input.negotiatedFrameRate,
          integrityCheck: input.delivery.integrityCheck, control: control, sinkList: sinks)
      }, whenEnded: whenEnded)
  }

  /// Starts a stream for a single recording, and ends the stream with the recording.
  ///
  /// - Returns: The sink that queues the frames of the recording.
  /// - Throws: `MediaError` from the device.
  package static func take(
    from input: DeviceInput, limit: CaptureLimit, queue: FrameQueue, control: CaptureControl
  ) throws(MediaError) -> TakeSink {
    let take = TakeSink(limit: limit, queue: queue, control: control, endsCapture: true)
    try CaptureThread(of: input, into: SinkList([take]), control: control).begin()
    return take
  }
}
