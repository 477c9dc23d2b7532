// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankCapture
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// The sinks of a take whose camera may be restarted: it may be lost and return, take a photo in another
/// mode, or get another frame rate.
///
/// When the session restarts the camera, the take gets a new queue for the frames of the new stream. If
/// only the frame rate has changed, they belong to the same file. If the camera has returned in the mode
/// of the take, they begin the next file.
final class Reconnection: Sendable {
  /// A sink for the camera's frames, and the queue that the sink fills.
  struct Stream: Sendable {
    let sink: TakeSink
    let queue: FrameQueue
    /// Whether the frames continue the file of the stream before.
    var continuesFile = false
  }

  private struct State {
    var stream: Stream
    /// Whether the session is setting the camera to another mode.
    var isChangingMode = false
    /// The mode of the last stream.
    var modeName: String
  }

  /// The reasons for which a stream ends although its camera may return.
  static let reasons: Set<StopReason> = [.deviceLost, .interrupted, .reconfigured]

  private let take: TakeConfiguration
  private let delivery: FrameDelivery
  /// Whether the take waits for a camera that is lost, or that takes a photo in another mode.
  private let waits: Bool
  private let state: Mutex<State>
  private let change = DispatchSemaphore(value: 0)
  /// The interval between checks for a stop request.
  private static let interval = DispatchTimeInterval.milliseconds(50)

  init(_ take: TakeConfiguration, _ first: Stream, waits: Bool) {
    (self.take, self.waits) = (take, waits)
    delivery = take.input.delivery
    state = Mutex(State(stream: first, modeName: take.input.modeName))
  }

  /// Whether frames of another rate can continue a file.
  ///
  /// H.264 would need a key frame and possibly other parameter sets. A camera's own audio stops with its
  /// frames.
  private var allowsOtherRate: Bool {
    let input = take.input
    return delivery.layout != .compressed(.h264) && input.delivery.layout == delivery.layout
      && (input.delivery.width, input.delivery.height) == (delivery.width, delivery.height)
      && (take.audio == nil || input.ports(for: .audio).isEmpty)
  }

  func willChangeMode() { state.withLock { $0.isChangingMode = true } }

  func didChangeMode() {
    state.withLock { $0.isChangingMode = false }
    change.signal()
  }

  var isChangingMode: Bool { state.withLock { $0.isChangingMode } }

  /// The current sink, or a new sink if the stream of the current one has ended and the camera is
  /// open again.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` for a new sink's queue.
  func sink() throws(MediaError) -> TakeSink {
    try state.withLock { (state) throws(MediaError) -> TakeSink in
      let sink = state.stream.sink
      guard let reason = sink.end?.stopReason, take.control.requestedStop == nil else {
        return sink
      }
      // If the camera cannot start in the new mode, a sink ends with that error. The camera then returns
      // to the old mode.
      let continuesFile = state.isChangingMode && allowsOtherRate
      let returns =
        waits && Self.reasons.contains(reason) && take.input.modeName == state.modeName
      guard continuesFile || returns else { return sink }
      let queue = try take.makeQueue()
      state.stream = Stream(
        sink: sink.continued(in: queue), queue: queue, continuesFile: continuesFile)
      state.modeName = take.input.modeName
      change.signal()
      return state.stream.sink
    }
  }

  /// Waits until the session has set the camera to another mode.
  ///
  /// - Returns: The stream whose frames continue the file of the stream that ended, or nil.
  func continuation(of stream: Stream) -> Stream? {
    while true {
      let (new, isChanging) = state.withLock { ($0.stream, $0.isChangingMode) }
      guard new.sink === stream.sink else { return new.continuesFile ? new : nil }
      guard isChanging, take.control.requestedStop == nil else { return nil }
      _ = change.wait(timeout: .now() + Self.interval)
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
      let new = state.withLock { $0.stream }
      // The camera may be lost again before the first frame of the new stream.
      if new.sink !== last.sink, new.queue.waitForFrame(at: 0) { return new }
      last = new
      _ = change.wait(timeout: .now() + Self.interval)
    }
    return nil
  }
}
