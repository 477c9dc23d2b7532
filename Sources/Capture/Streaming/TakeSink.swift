// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
public import OvercrankMediaCore
import Synchronization

/// The limits at which a take ends on its own.
public struct CaptureLimit: Hashable, Sendable {
  /// The longest duration.
  ///
  /// The take ends at the first frame this long after its first frame, or later.
  public var duration: MediaTime?
  /// The number of frames after which the take ends.
  public var frameCount: Int64?

  /// Creates a limit.
  ///
  /// Without a duration and a count, the take continues until it is stopped.
  public init(duration: MediaTime? = nil, frameCount: Int64? = nil) {
    self.duration = duration
    self.frameCount = frameCount
  }
}

/// The sink of a take, which queues frames until a limit or a stop request.
///
/// With a buffer pool, frames stay in the driver's buffers up to a maximum, and further frames are
/// copied. A writer that keeps up therefore causes no copies, and a stalled writer cannot take more
/// buffers from the driver.
package final class TakeSink: FrameSink {
  private let limit: CaptureLimit
  private let queue: FrameQueue
  private let control: CaptureControl
  /// Whether the stream runs only for this take and ends with it.
  private let endsCapture: Bool
  /// Whether a full queue ends the take.
  ///
  /// The frame that did not fit is then not part of the take.
  private let endsWhenFull: Bool
  /// Whether frames are copied if other sinks keep buffers.
  ///
  /// Compressed frames are small, so a copy costs less than a buffer.
  private let copiesBesideOthers: Bool
  private let result = Mutex<CaptureEnd?>(nil)
  /// The greatest number of buffers that may be held at a time.
  private let maximumHeld = Atomic<Int>(0)

  // State used only by the capture thread.
  private nonisolated(unsafe) var state = State()

  private struct State {
    var end = CaptureEnd()
    var isOver = false
    var queuedCount: Int64 = 0
    /// The clock of the take's limit, which is zero at the first queued frame.
    ///
    /// ``FrameAccount`` has the file's clock instead, which is zero at the first stored frame: in
    /// H.264 the first key frame, which the writer's thread finds after this thread has checked the
    /// limit.
    var clock = PausableClock()
    /// The first frame of a pause that is not yet noted in the queue.
    var pause: FrameObservation?
  }

  package init(
    limit: CaptureLimit, queue: FrameQueue, control: CaptureControl, endsCapture: Bool,
    endsWhenFull: Bool = false, copiesBesideOthers: Bool = false
  ) {
    self.limit = limit
    self.queue = queue
    self.control = control
    self.endsCapture = endsCapture
    self.endsWhenFull = endsWhenFull
    self.copiesBesideOthers = copiesBesideOthers
  }

  /// The final state of the take, or nil while it is running.
  package var end: CaptureEnd? { result.withLock { $0 } }

  package func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard !state.isOver else { return nil }
    if !endsCapture, let reason = control.requestedStop {
      state.end.stopReason = reason
      finish()
      return nil
    }
    guard let reason = control.isPaused.load(ordering: .relaxed) ? pause(frame) : enter(&frame)
    else { return nil }
    if endsCapture { return reason }
    state.end.stopReason = reason
    finish()
    return nil
  }

  package func hasSpace(for byteCount: Int) -> Bool {
    // A take that has ended or is about to end must not block the driver.
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
    // At most half of the pool is held, so that the camera has spare buffers when the writer
    // stalls.
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
    finish()
  }

  private func finish() {
    state.isOver = true
    let end = state.end
    result.withLock { $0 = end }
    queue.close()
  }

  /// Leaves out a frame.
  ///
  /// The first frame of a pause is noted in the queue.
  private func pause(_ arrived: borrowing DequeuedBuffer) -> StopReason? {
    if !state.clock.isPaused {
      state.pause = arrived.observation
      state.clock.pause(atMicroseconds: arrived.observation.microseconds)
    }
    _ = notesPause()
    return nil
  }

  /// Notes the pause in the queue.
  ///
  /// Returns false if the queue is full.
  private func notesPause() -> Bool {
    guard var frame = state.pause else { return true }
    frame.unnoted = state.end.frames.unnoted
    frame.outcome = .paused
    guard queue.push(.note(frame)) else { return false }
    (state.pause, state.end.frames.unnoted) = (nil, 0)
    return true
  }

  /// Queues a frame.
  ///
  /// Returns a reason if the frame ends the take.
  private func enter(_ arrived: inout DequeuedBuffer) -> StopReason? {
    var frame = arrived.observation
    guard notesPause() else {
      // The frame is dropped rather than the note of the pause, which must not be lost.
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

  /// Appends a frame to the queue, in the driver's buffer if permitted.
  private func push(_ arrived: inout DequeuedBuffer, _ observation: FrameObservation) -> Bool {
    var frame = QueuedFrame(observation: observation, bytes: arrived.bytes)
    let maximum = maximumHeld.load(ordering: .relaxed)
    let heldCount = maximum > 0 ? queue.heldCount : 0
    if heldCount < maximum, let pool = queue.pool { frame.heldBuffer = arrived.hold(in: pool) }
    guard queue.push(frame) else {
      if let heldBuffer = frame.heldBuffer { queue.pool?.cancelHold(heldBuffer) }
      return false
    }
    // The consumer is woken early, so that the next frames need no copy.
    if frame.heldBuffer != nil, heldCount + 1 >= maximum * 3 / 4 { queue.wakeTaker() }
    return true
  }
}
