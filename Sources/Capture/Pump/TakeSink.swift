// SPDX-License-Identifier: Apache-2.0
public import MediaTiming
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

/// A take: frames from the first on are copied into a queue, until a limit or a request.
package final class TakeSink: FrameSink {
  private let limit: CaptureLimit
  private let queue: FrameQueue
  private let control: CaptureControl
  /// Whether the stream is on for this take alone, and ends with it.
  private let endsCapture: Bool
  private let result = Mutex<CaptureEnd?>(nil)

  // The capture thread's own.
  private nonisolated(unsafe) var state = State()

  private struct State {
    var end = CaptureEnd()
    var isOver = false
    var queuedCount: Int64 = 0
    /// The time of the first frame queued: the take's zero.
    var origin: Int64?
  }

  package init(
    limit: CaptureLimit, queue: FrameQueue, control: CaptureControl, endsCapture: Bool
  ) {
    self.limit = limit
    self.queue = queue
    self.control = control
    self.endsCapture = endsCapture
  }

  /// What the capture thread knew when the take was over; nil while it is not.
  package var end: CaptureEnd? { result.withLock { $0 } }

  package func take(_ frame: inout ArrivedFrame) -> StopReason? {
    guard !state.isOver else { return nil }
    if !endsCapture, let reason = control.requestedStop {
      state.end.stopReason = reason
      finish()
      return nil
    }
    guard let reason = enter(frame) else { return nil }
    if endsCapture { return reason }
    state.end.stopReason = reason
    finish()
    return nil
  }

  package func end(_ end: CaptureEnd) {
    guard !state.isOver else { return }
    state.end.stopReason = end.stopReason
    state.end.error = end.error
    state.end.silence = end.silence
    state.end.cost = end.cost
    finish()
  }

  private func finish() {
    state.isOver = true
    let end = state.end
    result.withLock { $0 = end }
    queue.close()
  }

  /// Notes one frame and hands it over; a reason to stop when it ends the take.
  private func enter(_ arrived: borrowing ArrivedFrame) -> StopReason? {
    var frame = arrived.observation
    frame.unnoted = state.end.unnoted
    if let origin = state.origin, let duration = limit.duration,
      MediaTime(microseconds: frame.microseconds &- origin) >= duration
    {
      state.end.next = frame
      state.end.microseconds = origin &+ Int64(saturating: duration.doubleValue * 1_000_000)
      return .duration
    }
    if !arrived.isWhole {
      frame.fate = .corrupt
    } else if queue.push(QueuedFrame(observation: frame, bytes: arrived.bytes)) {
      state.end.unnoted = 0
      if state.origin == nil { state.origin = frame.microseconds }
      state.queuedCount += 1
      return limit.frameCount.map { state.queuedCount >= $0 } == true ? .frames : nil
    } else {
      frame.fate = .refused
    }
    let note = QueuedFrame(observation: frame, bytes: UnsafeRawBufferPointer(start: nil, count: 0))
    state.end.unnoted = queue.push(note) ? 0 : state.end.unnoted + 1
    return nil
  }
}
