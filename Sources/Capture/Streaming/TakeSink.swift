// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
public import OvercrankMediaCore
import Synchronization

/// When a take is over by itself.
public struct CaptureLimit: Hashable, Sendable {
  /// The take ends at the first frame this long after its first frame, or later.
  public var duration: MediaTime?
  /// The take ends when this many frames are in hand.
  public var frameCount: Int64?

  /// Makes a limit; without any, the take goes on until it is stopped.
  public init(duration: MediaTime? = nil, frameCount: Int64? = nil) {
    self.duration = duration
    self.frameCount = frameCount
  }
}

/// A take: frames from the first on go into a queue, until a limit or a request.
///
/// Where the queue takes loans, a frame stays in the driver's buffer while few others do; the
/// frames behind it are copied. So a writer that keeps up has nothing copied, and one that stalls
/// keeps no buffer more from the driver.
package final class TakeSink: FrameSink {
  private let limit: CaptureLimit
  private let queue: FrameQueue
  private let control: CaptureControl
  /// Whether the stream is on for this take alone, and ends with it.
  private let endsCapture: Bool
  /// Whether a queue without room is the end of the take, and its frame no part of it.
  private let endsWhenFull: Bool
  /// Whether frames are copied beside others that keep them: what is compressed is so small that to
  /// copy it costs less than a buffer.
  private let copiesBesideOthers: Bool
  private let result = Mutex<CaptureEnd?>(nil)
  /// How many buffers may be held at a time.
  private let maximumHeld = Atomic<Int>(0)

  // The capture thread's own.
  private nonisolated(unsafe) var state = State()

  private struct State {
    var end = CaptureEnd()
    var isOver = false
    var queuedCount: Int64 = 0
    /// Zero at the first frame queued.
    var clock = PausableClock()
    /// The first frame of a pause of which the queue does not know yet.
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

  /// What the capture thread knew when the take was over; nil while it is not.
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
    // A take that is over or is to end is no reason to wait.
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
    // Half of what can be held at most: a camera that captures for a file alone has the more
    // buffers for moments in which nobody takes its frames.
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

  /// Leaves a frame out; the first of a pause is noted, so that no other is missed.
  private func pause(_ arrived: borrowing DequeuedBuffer) -> StopReason? {
    if !state.clock.isPaused {
      state.pause = arrived.observation
      state.clock.pause(atMicroseconds: arrived.observation.microseconds)
    }
    _ = notesPause()
    return nil
  }

  /// Says in the queue that the take was paused; false where there is no room for that yet.
  private func notesPause() -> Bool {
    guard var frame = state.pause else { return true }
    frame.unnoted = state.end.frames.unnoted
    frame.outcome = .paused
    guard queue.push(.note(frame)) else { return false }
    (state.pause, state.end.frames.unnoted) = (nil, 0)
    return true
  }

  /// Notes one frame and hands it over; a reason to stop when it ends the take.
  private func enter(_ arrived: inout DequeuedBuffer) -> StopReason? {
    var frame = arrived.observation
    guard notesPause() else {
      // Rather one frame more is missing than that the pause is.
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

  /// Puts a frame into the queue, in the driver's buffer where that may be.
  private func push(_ arrived: inout DequeuedBuffer, _ observation: FrameObservation) -> Bool {
    var frame = QueuedFrame(observation: observation, bytes: arrived.bytes)
    let maximum = maximumHeld.load(ordering: .relaxed)
    let heldCount = maximum > 0 ? queue.heldCount : 0
    if heldCount < maximum, let pool = queue.pool { frame.heldBuffer = arrived.hold(in: pool) }
    guard queue.push(frame) else {
      if let heldBuffer = frame.heldBuffer { queue.pool?.cancelHold(heldBuffer) }
      return false
    }
    // Soon enough that the next ones need not be copied.
    if frame.heldBuffer != nil, heldCount + 1 >= maximum * 3 / 4 { queue.wakeTaker() }
    return true
  }
}
