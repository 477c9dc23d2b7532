// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankCapture
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// The sinks of a take whose camera may be interrupted: it may be lost and return, or take a photo
/// in another mode.
///
/// When the session restarts the camera in the mode of the take, the take gets a new queue for the
/// frames of the new stream.
final class Reconnection: Sendable {
  /// A sink for the camera's frames, and the queue that the sink fills.
  struct Stream: Sendable {
    let sink: TakeSink
    let queue: FrameQueue
  }

  /// The reasons for which a stream ends although its camera may return.
  static let reasons: Set<StopReason> = [.deviceLost, .interrupted, .reconfigured]

  private let take: TakeConfiguration
  private let modeName: String
  private let current: Mutex<Stream>
  private let change = DispatchSemaphore(value: 0)
  /// The interval between checks for a stop request.
  private static let interval = DispatchTimeInterval.milliseconds(50)

  init(_ take: TakeConfiguration, _ first: Stream) {
    self.take = take
    modeName = take.input.modeName
    current = Mutex(first)
  }

  /// The current sink, or a new sink if the stream of the current one has ended and the camera is
  /// open again.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` for a new sink's queue.
  func sink() throws(MediaError) -> TakeSink {
    try current.withLock { (stream) throws(MediaError) -> TakeSink in
      guard let reason = stream.sink.end?.stopReason, Self.reasons.contains(reason),
        take.control.requestedStop == nil, take.input.modeName == modeName
      else { return stream.sink }
      let queue = try take.makeQueue()
      stream = Stream(sink: stream.sink.continued(in: queue), queue: queue)
      change.signal()
      return stream.sink
    }
  }

  /// Waits until frames of the returned camera arrive.
  ///
  /// - Parameters:
  ///   - stream: The stream that ended.
  ///   - timeout: The time to wait.
  /// - Returns: The new stream, or nil after the timeout or a stop request.
  func next(after stream: Stream, timeout: MediaTime) -> Stream? {
    let (end, overflow) = MonotonicClock.nanoseconds()
      .addingReportingOverflow(timeout.wholeNanoseconds)
    var last = stream
    while take.control.requestedStop == nil, overflow || MonotonicClock.nanoseconds() < end {
      let new = current.withLock { $0 }
      // The camera may be lost again before the first frame of the new stream.
      if new.sink !== last.sink, new.queue.waitForFrame(at: 0) { return new }
      last = new
      _ = change.wait(timeout: .now() + Self.interval)
    }
    return nil
  }
}
