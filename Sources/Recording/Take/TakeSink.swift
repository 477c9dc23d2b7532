// SPDX-License-Identifier: Apache-2.0

package import OvercrankCapture
import OvercrankFrameAccounting
public import OvercrankMediaCore
import Synchronization

/// The limits at which a recording ends without a stop request.
public struct CaptureLimit: Hashable, Sendable {
  /// The longest duration.
  ///
  /// The recording ends at the first frame whose time is at least this long after the first frame.
  /// That frame is not recorded.
  public var duration: MediaTime?
  /// The number of recorded frames after which the recording ends.
  public var frameCount: Int64?

  /// Creates a limit.
  ///
  /// Without a duration and a count, the recording continues until it is stopped.
  public init(duration: MediaTime? = nil, frameCount: Int64? = nil) {
    self.duration = duration
    self.frameCount = frameCount
  }
}

/// The sink of a recording, which queues frames until a limit or a stop request.
///
/// With a buffer pool, frames stay in the driver's buffers up to a maximum number; more frames are
/// copied. If the writer keeps up, nothing is copied. If the writer stalls, the driver still keeps
/// enough buffers.
package final class TakeSink: FrameSink {
  private let limit: CaptureLimit
  private let queue: FrameQueue
  private let control: CaptureControl
  /// Whether the stream runs only for this recording and ends with it.
  private let endsCapture: Bool
  /// Whether a full queue ends the recording.
  ///
  /// The frame that does not fit is then not recorded.
  private let endsWhenFull: Bool
  /// Whether frames are copied if other sinks hold buffers.
  ///
  /// Set for compressed frames. They are small, so a copy costs less than the loss of a buffer.
  private let copiesBesideOthers: Bool
  private let result = Mutex<CaptureEnd?>(nil)
  /// The greatest number of the driver's buffers that this sink may hold at a time.
  private let maximumHeld = Atomic<Int>(0)

  // State used only by the capture thread. The functions for a frame receive it, so that its
  // exclusivity is checked once.
  private nonisolated(unsafe) var state = State()

  private struct State {
    var end = CaptureEnd()
    var isOver = false
    var queuedCount: Int64 = 0
    /// The clock for the duration limit.
    ///
    /// The clock is zero at the first queued frame and stops during pauses.
    ///
    /// The file's own time is kept by ``FrameAccount`` and is zero at the first stored frame. In
    /// H.264 that is the first key frame. The writer's thread finds that frame only after this
    /// thread has checked the limit, so the limit cannot use the file's time.
    var clock = PausableClock()
    /// The first frame of the current pause, or nil once the queue contains a note of the pause.
    var pause: FrameObservation?
  }

  package init(
    limit: CaptureLimit, queue: FrameQueue, control: CaptureControl, endsCapture: Bool,
    endsWhenFull: Bool = false, copiesBesideOthers: Bool = false
  ) {
    (self.limit, self.queue, self.control) = (limit, queue, control)
    (self.endsCapture, self.endsWhenFull) = (endsCapture, endsWhenFull)
    self.copiesBesideOthers = copiesBesideOthers
  }

  /// Creates a sink that continues the same recording after the device was restarted.
  ///
  /// The duration and the frames that this sink has recorded count toward the limits of the new
  /// sink. Call this after the end of this sink.
  package func continued(in queue: FrameQueue) -> TakeSink {
    let next = TakeSink(
      limit: limit, queue: queue, control: control, endsCapture: false,
      endsWhenFull: endsWhenFull, copiesBesideOthers: copiesBesideOthers)
    // The capture thread no longer uses the state of a sink that has ended.
    (next.state.clock, next.state.queuedCount) = (state.clock, state.queuedCount)
    (next.state.pause, next.state.end.frames.unnoted) = (state.pause, state.end.frames.unnoted)
    return next
  }

  /// The final state of the recording, or nil while it is running.
  package var end: CaptureEnd? { result.withLock { $0 } }

  package func take(_ frame: inout DequeuedBuffer) -> StopReason? { take(&frame, &state) }

  private func take(_ frame: inout DequeuedBuffer, _ state: inout State) -> StopReason? {
    guard !state.isOver else { return nil }
    if !endsCapture, let reason = control.requestedStop {
      state.end.stopReason = reason
      finish(&state)
      return nil
    }
    let isPaused = control.isPaused.load(ordering: .relaxed)
    guard let reason = isPaused ? pause(frame, &state) : accept(&frame, &state) else { return nil }
    if endsCapture { return reason }
    state.end.stopReason = reason
    finish(&state)
    return nil
  }

  package func hasSpace(for byteCount: Int) -> Bool {
    // If the recording has ended or is about to end, it must not make the driver wait.
    if state.isOver || endsWhenFull || control.requestedStop != nil
      || queue.hasSpace(for: byteCount)
    {
      return true
    }
    queue.wakeTaker()
    return false
  }

  package var keeping: FrameKeeping {
    queue.pool == nil ? .never : copiesBesideOthers ? .whenAlone : .always
  }

  package func allow(keeping count: Int) {
    // This sink holds at most half of the frames that the pool allows to be held. If the writer
    // stalls, the camera then still has free buffers.
    let limit = min(count, (queue.pool?.capacity ?? 0) / 2)
    maximumHeld.store(limit, ordering: .relaxed)
  }

  package func end(_ end: CaptureEnd) {
    guard !state.isOver else { return }
    state.end.stopReason = end.stopReason
    state.end.error = end.error
    state.end.frames.silence = end.frames.silence
    state.end.lastFrameDuration = end.lastFrameDuration
    state.end.cost = end.cost
    finish(&state)
  }

  private func finish(_ state: inout State) {
    state.isOver = true
    let end = state.end
    result.withLock { $0 = end }
    queue.close()
  }

  /// Leaves a frame out of the recording.
  ///
  /// The first frame of a pause is reported by a note in the queue.
  private func pause(
    _ arrived: borrowing DequeuedBuffer, _ state: inout State
  ) -> StopReason? {
    if !state.clock.isPaused {
      state.pause = arrived.observation
      state.clock.pause(atMicroseconds: arrived.observation.microseconds)
    }
    _ = notesPause(&state)
    return nil
  }

  /// Adds a note of the pause to the queue, if the queue has none yet.
  ///
  /// Returns false if the queue is full.
  private func notesPause(_ state: inout State) -> Bool {
    guard var frame = state.pause else { return true }
    frame.unnoted = state.end.frames.unnoted
    frame.outcome = .paused
    guard queue.push(.note(frame)) else { return false }
    (state.pause, state.end.frames.unnoted) = (nil, 0)
    return true
  }

  /// Queues a frame.
  ///
  /// Returns the reason if the frame ends the recording, otherwise nil.
  private func accept(
    _ arrived: inout DequeuedBuffer, _ state: inout State
  ) -> StopReason? {
    var frame = arrived.observation
    guard notesPause(&state) else {
      // The queue is full, so it rejected the note of the pause. The note must come before this
      // frame, so the frame is dropped.
      state.end.frames.unnoted += 1
      return nil
    }
    state.clock.resume(atMicroseconds: frame.microseconds)
    frame.unnoted = state.end.frames.unnoted
    if let origin = state.clock.origin, let duration = limit.duration,
      MediaTime(microseconds: frame.microseconds &- origin) >= duration
    {
      state.end.frames.next = frame
      state.end.frames.microseconds = origin &+ Int64(saturating: duration.doubleValue * 1_000_000)
      return .duration
    }
    if !arrived.isWhole {
      frame.outcome = .corrupt
    } else if push(&arrived, frame) {
      state.end.frames.unnoted = 0
      state.clock.begin(atMicroseconds: frame.microseconds)
      state.queuedCount += 1
      return limit.frameCount.map { state.queuedCount >= $0 } == true ? .frames : nil
    } else if endsWhenFull {
      state.end.frames.next = frame
      return .maxSize
    } else {
      frame.outcome = .refused
    }
    state.end.frames.unnoted = queue.push(.note(frame)) ? 0 : state.end.frames.unnoted + 1
    return nil
  }

  /// Appends a frame to the queue.
  ///
  /// The bytes stay in the driver's buffer if permitted, or are copied.
  private func push(_ arrived: inout DequeuedBuffer, _ observation: FrameObservation) -> Bool {
    var frame = QueuedFrame(observation: observation, bytes: arrived.bytes)
    let maximum = maximumHeld.load(ordering: .relaxed)
    let heldCount = maximum > 0 ? queue.heldCount : 0
    if heldCount < maximum, let pool = queue.pool { frame.heldBuffer = arrived.hold(in: pool) }
    guard queue.push(frame) else {
      if let heldBuffer = frame.heldBuffer { queue.pool?.cancelHold(heldBuffer) }
      return false
    }
    // The consumer is woken once three quarters of the permitted buffers are held. It then releases
    // buffers before the limit is reached, so that the next frames need no copy.
    if frame.heldBuffer != nil, heldCount + 1 >= maximum * 3 / 4 { queue.wakeTaker() }
    return true
  }
}

extension CaptureThread {
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
