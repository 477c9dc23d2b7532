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
    /// The frame rate of the camera.
    let frameRate: FrameRate
    /// Whether the frames continue the file of the stream before.
    var continuesFile = false
  }

  private struct State {
    /// The last stream, and those before it whose frames may still wait.
    var streams: [Stream]
    /// Whether the session is setting the camera to another mode.
    var isChangingMode = false
    /// Whether a stream has begun during the change of the mode.
    var hasContinued = false
    /// The mode of the last stream.
    var modeName: String

    /// The stream after another one, or nil if there is none yet.
    func successor(of stream: Stream) -> Stream? {
      guard let index = streams.firstIndex(where: { $0.sink === stream.sink }) else { return nil }
      return streams.dropFirst(index + 1).first
    }
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
    state = Mutex(State(streams: [first], modeName: take.input.modeName))
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

  func willChangeMode() {
    state.withLock { ($0.isChangingMode, $0.hasContinued) = (true, false) }
  }

  func didChangeMode() {
    state.withLock { $0.isChangingMode = false }
    change.signal()
  }

  /// Whether frames of another stream may continue the file of a stream.
  func mayContinue(_ stream: Stream) -> Bool {
    state.withLock { $0.isChangingMode || $0.successor(of: stream)?.continuesFile == true }
  }

  /// The current sink, or a new sink if the stream of the current one has ended and the camera is
  /// open again.
  ///
  /// - Parameter camera: The camera whose frames are wanted.
  /// - Returns: The sink. For another camera than that of the take, a sink that has ended.
  /// - Throws: `MediaError` with `.outOfMemory` for a new sink's queue.
  func sink(from camera: DeviceInput) throws(MediaError) -> TakeSink? {
    try state.withLock { (state) throws(MediaError) -> TakeSink? in
      guard let sink = state.streams.last?.sink else { return nil }
      guard let reason = sink.end?.stopReason, take.control.requestedStop == nil,
        camera === take.input
      else { return sink }
      // If the camera cannot start in the new mode, a sink ends with that error. The camera then returns
      // to the old mode.
      let continuesFile =
        state.isChangingMode && allowsOtherRate && (reason == .reconfigured || state.hasContinued)
      let returns =
        waits && Self.reasons.contains(reason) && take.input.modeName == state.modeName
      guard continuesFile || returns else { return sink }
      let queue = try take.makeQueue()
      let new = Stream(
        sink: sink.continued(in: queue), queue: queue,
        frameRate: take.input.negotiatedFrameRate, continuesFile: continuesFile)
      state.streams.append(new)
      state.modeName = take.input.modeName
      state.hasContinued = continuesFile
      change.signal()
      return new.sink
    }
  }

  /// Waits until the session has set the camera to another mode.
  ///
  /// - Returns: The stream whose frames continue the file of the stream that ended, or nil.
  func continuation(of stream: Stream) -> Stream? {
    while true {
      let (next, isChanging) = state.withLock { state in
        // The frames of the streams before this one are written.
        if let index = state.streams.firstIndex(where: { $0.sink === stream.sink }) {
          state.streams.removeFirst(index)
        }
        return (state.successor(of: stream), state.isChangingMode)
      }
      if let next { return next.continuesFile ? next : nil }
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
      guard let new = state.withLock({ $0.streams.last }) else { return nil }
      // The camera may be lost again before the first frame of the new stream.
      if new.sink !== last.sink, new.queue.waitForFrame(at: 0) { return new }
      last = new
      _ = change.wait(timeout: .now() + Self.interval)
    }
    return nil
  }
}
