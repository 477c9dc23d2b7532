// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankFrameAccounting
import Synchronization

/// The capture thread's end of a data output: holds each frame, or notes why not.
final class DataSink: FrameSink {
  private let gate: ConnectionGate
  /// Where the frames come from.
  let pool: BufferPool
  let ring: VideoSampleRing
  let counters: DataOutputCounters
  let options: Options
  private let wake: DispatchSemaphore
  // The capture thread's own: when the next frame is due, in microseconds.
  private nonisolated(unsafe) var due: Int64?

  /// What the output's user may change while frames flow.
  final class Options: Sendable {
    let discardsLate = Atomic<Bool>(true)
    /// In microseconds; 0 for every frame.
    let minFrameDuration = Atomic<Int64>(0)
    /// Frames that wait or are in the user's hands.
    let kept = Atomic<Int>(0)
    /// Frames that wait.
    let waiting = Atomic<Int>(0)
    /// The most that may be kept: with the other outputs' shares no more than can be held.
    let maximumKept = Atomic<Int>(0)
    /// Whether more is kept than may be, and some of it waits.
    var isOverShare: Bool {
      waiting.load(ordering: .relaxed) > 0
        && kept.load(ordering: .relaxed) > maximumKept.load(ordering: .relaxed)
    }
  }

  init(
    _ gate: ConnectionGate, pool: BufferPool, ring: VideoSampleRing, counters: DataOutputCounters,
    options: Options, wake: DispatchSemaphore
  ) {
    self.gate = gate
    self.pool = pool
    self.ring = ring
    self.counters = counters
    self.options = options
    self.wake = wake
  }

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard gate.isOpen.load(ordering: .relaxed) else { return nil }
    counters.offered.wrappingAdd(1, ordering: .relaxed)
    let entry = hold(&frame)
    if case .dropped(let reason, _) = entry { counters.note(reason) }
    if ring.push(entry) {
      wake.signal()
    } else if case .held(let heldBuffer, _, _) = entry {
      // There is room for all that can be held, unless notes took it.
      options.kept.wrappingSubtract(1, ordering: .relaxed)
      options.waiting.wrappingSubtract(1, ordering: .relaxed)
      pool.cancelHold(heldBuffer)
      counters.note(.outOfBuffers)
    }
    return nil
  }

  func hasSpace(for byteCount: Int) -> Bool {
    guard gate.isOpen.load(ordering: .relaxed) else { return true }
    let mostWaiting = options.discardsLate.load(ordering: .relaxed) ? 1 : Int.max
    return options.waiting.load(ordering: .acquiring) < mostWaiting
      && options.kept.load(ordering: .relaxed) < options.maximumKept.load(ordering: .relaxed)
      && pool.heldCount < pool.capacity && ring.count < ring.capacity
  }

  func end(_ end: CaptureEnd) { due = nil }

  var keeping: FrameKeeping { .always }

  func allow(keeping count: Int) {
    options.maximumKept.store(count, ordering: .relaxed)
    if options.isOverShare { wake.signal() }
  }

  private func hold(_ frame: inout DequeuedBuffer) -> VideoSampleRing.Entry {
    let observation = frame.observation
    guard frame.isWhole else { return .dropped(.corrupt, observation) }
    let time = observation.microseconds
    let duration = options.minFrameDuration.load(ordering: .relaxed)
    // A driver's times jitter: what comes a little too soon is in time.
    if let due, duration > 0, time &+ duration / 8 < due { return .dropped(.tooSoon, observation) }
    // One is in the user's hands, and none may wait behind it.
    if options.discardsLate.load(ordering: .relaxed), options.waiting.load(ordering: .acquiring) > 0
    {
      return .dropped(.frameWasLate, observation)
    }
    guard options.kept.load(ordering: .relaxed) < options.maximumKept.load(ordering: .relaxed),
      let heldBuffer = frame.hold(in: pool)
    else { return .dropped(.outOfBuffers, observation) }
    options.kept.wrappingAdd(1, ordering: .relaxed)
    options.waiting.wrappingAdd(1, ordering: .relaxed)
    // From the last due time, so that a rate that is no part of the camera's does not sink.
    due = duration > 0 ? max((due ?? time) &+ duration, time &+ duration / 2) : nil
    return .held(heldBuffer, observation, frame.exposure)
  }
}
