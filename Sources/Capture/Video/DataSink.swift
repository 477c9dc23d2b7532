// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankMediaCore
import Synchronization

/// The sink of a video data output.
///
/// On the capture thread it holds or drops each frame.
final class DataSink: FrameSink {
  private let gate: ConnectionGate
  /// The buffer pool of the camera.
  let pool: BufferPool
  let ring: VideoSampleRing
  let counters: DataOutputCounters
  let options: Options
  private let feed: SampleDeliverer<SampleBuffer>.Feed
  // Used only by the capture thread.
  private nonisolated(unsafe) var interval: MinimumFrameInterval

  /// Settings and counters that other threads may access while frames flow.
  final class Options: Sendable {
    let discardsLate = Atomic<Bool>(true)
    /// The shortest frame interval in microseconds, or 0 to accept every frame.
    let minFrameDuration = Atomic<Int64>(0)
    /// The number of frames that are in the queue or held by the program.
    let kept = Atomic<Int>(0)
    /// The number of frames in the queue.
    let waiting = Atomic<Int>(0)
    /// The greatest number of buffers that this output may hold.
    ///
    /// It is this output's share of the buffers that all outputs of the camera together may hold.
    let maximumKept = Atomic<Int>(0)
    /// Whether the output holds more frames than its share, and at least one of these frames is
    /// still in the queue and can be dropped.
    var isOverShare: Bool {
      waiting.load(ordering: .relaxed) > 0
        && kept.load(ordering: .relaxed) > maximumKept.load(ordering: .relaxed)
    }
  }

  init(
    _ gate: ConnectionGate, pool: BufferPool, frameRate: FrameRate, ring: VideoSampleRing,
    counters: DataOutputCounters, options: Options, feed: SampleDeliverer<SampleBuffer>.Feed
  ) {
    interval = MinimumFrameInterval(frameRate: frameRate)
    (self.gate, self.pool, self.ring, self.counters) = (gate, pool, ring, counters)
    (self.options, self.feed) = (options, feed)
  }

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard gate.isOpen.load(ordering: .relaxed) else { return nil }
    counters.offered.wrappingAdd(1, ordering: .relaxed)
    let entry = hold(&frame)
    if case .dropped(let reason, _) = entry { counters.note(reason) }
    if ring.push(entry) {
      feed.wake()
    } else if case .held(let heldBuffer, _, _) = entry {
      // The ring has an entry for each frame that can be held, and further entries for notes of
      // dropped frames. The ring is therefore full only if many notes wait in it.
      options.kept.wrappingSubtract(1, ordering: .relaxed)
      options.waiting.wrappingSubtract(1, ordering: .relaxed)
      pool.cancelHold(heldBuffer)
      counters.note(.outOfBuffers)
    }
    return nil
  }

  func hasSpace(for byteCount: Int) -> Bool {
    guard gate.isOpen.load(ordering: .relaxed) else { return true }
    let maximumWaiting = options.discardsLate.load(ordering: .relaxed) ? 1 : Int.max
    return options.waiting.load(ordering: .acquiring) < maximumWaiting
      && options.kept.load(ordering: .relaxed) < options.maximumKept.load(ordering: .relaxed)
      && pool.heldCount < pool.capacity && ring.count < ring.capacity
  }

  func end(_ end: CaptureEnd) { interval.reset() }

  var keeping: FrameKeeping { .always }

  func allow(keeping count: Int) {
    options.maximumKept.store(count, ordering: .relaxed)
    if options.isOverShare { feed.wake() }
  }

  private func hold(_ frame: inout DequeuedBuffer) -> VideoSampleRing.Entry {
    let observation = frame.observation
    guard frame.isWhole else { return .dropped(frame.dropReason, observation) }
    let time = observation.microseconds
    if interval.isTooSoon(time, minimum: options.minFrameDuration.load(ordering: .relaxed)) {
      return .dropped(.tooSoon, observation)
    }
    // A frame already waits in the queue, so the new frame counts as late and is dropped.
    if options.discardsLate.load(ordering: .relaxed), options.waiting.load(ordering: .acquiring) > 0
    {
      return .dropped(.frameWasLate, observation)
    }
    guard options.kept.load(ordering: .relaxed) < options.maximumKept.load(ordering: .relaxed),
      let heldBuffer = frame.hold(in: pool)
    else { return .dropped(.outOfBuffers, observation) }
    options.kept.wrappingAdd(1, ordering: .relaxed)
    options.waiting.wrappingAdd(1, ordering: .relaxed)
    interval.choose(time)
    return .held(heldBuffer, observation, frame.exposure)
  }
}

/// Selects frames that are at least a minimum duration apart.
///
/// If the minimum is n frame periods of the camera, every nth frame is selected. The driver's
/// timestamps jitter, so a frame may then be early by at most a quarter of the minimum and at most
/// half a period. If the minimum is not a whole number of periods, no frame may be early.
struct MinimumFrameInterval {
  /// The camera's frame period in nanoseconds, rounded up.
  private let period: Int64
  /// The time of the last selected frame in microseconds.
  private var last: Int64?

  init(frameRate: FrameRate) {
    let exact = try? frameRate.frameDuration
      .converted(to: 1_000_000_000, rounding: .towardPositiveInfinity).value
    period = max(1, exact ?? 1)
  }

  /// Whether a frame comes too soon after the last selected frame.
  ///
  /// - Parameters:
  ///   - time: The capture time of the frame, in microseconds.
  ///   - minimum: The minimum duration in microseconds, or zero to select every frame.
  /// - Returns: True if the frame must be left out, false if it may be selected.
  func isTooSoon(_ time: Int64, minimum: Int64) -> Bool {
    // If the clock went back, the time since the last selected frame is unknown. The frame is
    // selected.
    guard let last, minimum > 0, time >= last else { return false }
    return time &- last < minimum - tolerance(minimum)
  }

  /// Records that the frame with this time was selected.
  mutating func choose(_ time: Int64) { last = time }

  /// Forgets the last selected frame, so that the next frame is selected.
  mutating func reset() { last = nil }

  /// The time by which a frame may be early, in microseconds.
  private func tolerance(_ minimum: Int64) -> Int64 {
    let (nanoseconds, overflow) = minimum.multipliedReportingOverflow(by: 1_000)
    if overflow { return 0 }
    // A minimum duration counts as n frame periods even if it is shorter by up to an eighth of a
    // period. At 239.76 fps, for example, four periods are slightly longer than a minimum of 1/60
    // s.
    let rest = nanoseconds % period
    guard rest == 0 || period - rest <= period / 8 else { return 0 }
    return min(period / 2_000, minimum / 4)
  }
}
