// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// The sink of a photo output on the capture thread.
///
/// It holds the latest frames in the driver's buffers, so that a photo can be a frame from before its
/// request. Chosen frames are copied, so photos that wait to be encoded occupy no buffer of the
/// camera.
final class PhotoSink: FrameSink {
  let channel: PhotoChannel
  private let gate: ConnectionGate
  private let options: Options
  /// The number of buffers that this sink may hold.
  private let maximumHeld = Atomic<Int>(0)
  // Used only by the capture thread or, after it, by the thread that ends the sink.
  private nonisolated(unsafe) var state = State()

  /// Settings that other threads may change while frames flow.
  final class Options: Sendable {
    let keepsRecentFrames = Atomic<Bool>(true)
    /// The time from which the movies of Live Photos have frames, in microseconds; the greatest
    /// number before it is known.
    let ringStart = Atomic<Int64>(.max)
    /// Whether the session has no other output.
    let isAlone = Atomic<Bool>(false)
  }

  private struct RecentFrame {
    let frame: CandidateFrame
    let heldBuffer: BufferPool.HeldBuffer
  }

  /// A capture whose frames are not all chosen yet.
  private struct Pending {
    var request: PhotoRequest
    var takenCount = 0
    /// The index of the last chosen frame.
    var lastIndex: Int64 = -1

    /// The number of photos of the capture so far.
    var totalCount: Int { request.firstIndex + takenCount }
    var isInBurst: Bool { takenCount > 0 && request.interval == 0 }
  }

  private struct State {
    /// The held frames, oldest first.
    var recent: [RecentFrame] = []
    var pending: [Pending] = []
    var frameCount: Int64 = 0
    var isOver = false

    init() {
      // The arrays never grow beyond these capacities, so the capture thread allocates no memory.
      recent.reserveCapacity(PhotoSink.recentCount + 1)
      pending.reserveCapacity(PhotoChannel.maximumPending + 1)
    }
  }

  /// The number of recent frames to hold.
  ///
  /// One would suffice if each request reached the capture thread at once. The others cover the time
  /// in which the thread of the request was not scheduled.
  private static let recentCount = 3

  init(_ channel: PhotoChannel, gate: ConnectionGate, options: Options) {
    self.channel = channel
    self.gate = gate
    self.options = options
  }

  /// Whether the stream of the sink has ended.
  var isOver: Bool { channel.isClosed }
  private var pool: BufferPool { channel.source.pool }

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard gate.isOpen.load(ordering: .relaxed) else { return nil }
    acceptRequests()
    let candidate = CandidateFrame(
      observation: frame.observation, exposure: frame.exposure, index: state.frameCount)
    state.frameCount += 1
    guard frame.isWhole else { return nil }
    serve(candidate, frame.bytes)
    keep(&frame, candidate)
    return nil
  }

  func hasSpace(for byteCount: Int) -> Bool {
    acceptRequests()
    guard gate.isOpen.load(ordering: .relaxed), !state.pending.isEmpty else {
      // A source without a pace of its own would reach its end before the first request. If no
      // other output needs its frames, it waits for a request.
      return !options.isAlone.load(ordering: .relaxed)
    }
    return channel.hasSpace(for: byteCount)
  }

  var keeping: FrameKeeping {
    options.keepsRecentFrames.load(ordering: .relaxed) ? .always : .never
  }

  func allow(keeping count: Int) { maximumHeld.store(count, ordering: .relaxed) }

  func end(_ end: CaptureEnd) {
    guard !state.isOver else { return }
    state.isOver = true
    channel.close()
    acceptRequests()
    for pending in state.pending where !takesLatest(pending) {
      channel.end(
        id: pending.request.id, takenCount: pending.totalCount,
        .streamEnded(end.stopReason, end.error))
    }
    state.pending.removeAll()
    for entry in state.recent { pool.release(entry.heldBuffer) }
    state.recent.removeAll()
    channel.wakeProcessor()
  }

  // MARK: - On the capture thread

  private func acceptRequests() {
    while let request = channel.requests.pop() {
      let position = state.pending.firstIndex { $0.request.id == request.id }
      switch request.action {
      case .take, .measure: state.pending.append(Pending(request: request))
      case .stop:
        guard let position else { continue }
        let stopped = state.pending.remove(at: position)
        channel.end(id: request.id, takenCount: stopped.totalCount, .stopped)
      }
    }
  }

  /// Chooses frames for the pending captures.
  private func serve(_ current: CandidateFrame, _ bytes: UnsafeRawBufferPointer) {
    var position = 0
    while position < state.pending.count {
      // A copy, because choosing a frame reads other parts of the state.
      var pending = state.pending[position]
      if pending.request.preRoll > 0 {
        let start = options.ringStart.load(ordering: .relaxed)
        guard start != .max else {
          position += 1
          continue
        }
        pending.request.time = max(pending.request.time, start &+ pending.request.preRoll)
        pending.request.preRoll = 0
      }
      if advance(&pending, current, bytes) {
        state.pending.remove(at: position)
      } else {
        state.pending[position] = pending
        position += 1
      }
    }
  }

  /// Chooses a frame for a capture, if possible.
  ///
  /// Returns whether the capture needs no more frames.
  private func advance(
    _ pending: inout Pending, _ current: CandidateFrame, _ bytes: UnsafeRawBufferPointer
  ) -> Bool {
    if pending.isInBurst { return select(current, bytes, for: &pending) }
    let choice = FrameChoice.decide(
      pending.request.time(ofPhoto: pending.takenCount), current: current.time,
      arrival: current.observation.arrival, recent: state.recent.lazy.map { $0.frame.time },
      period: channel.source.period)
    switch choice {
    case .wait: return false
    case .current: return select(current, bytes, for: &pending)
    case .recent(var position):
      // A time lapse with an interval below a frame period must not contain a frame twice.
      guard state.recent[position].frame.index > pending.lastIndex else {
        return select(current, bytes, for: &pending)
      }
      // A burst goes on with the frames that followed the first.
      repeat {
        let recent = state.recent[position]
        if select(recent.frame, pool.bytes(of: recent.heldBuffer), for: &pending) { return true }
        position += 1
      } while pending.request.interval == 0 && position < state.recent.count
      return pending.request.interval == 0 ? select(current, bytes, for: &pending) : false
    }
  }

  /// Selects a frame for a capture.
  ///
  /// Returns whether the capture needs no more frames.
  private func select(
    _ frame: CandidateFrame, _ bytes: UnsafeRawBufferPointer, for pending: inout Pending
  ) -> Bool {
    let request = pending.request
    let isLast = pending.takenCount + 1 >= request.count
    let time = request.interval == 0 ? request.time : request.time(ofPhoto: pending.takenCount)
    let selected = SelectedFrame(
      id: request.id, index: request.firstIndex + pending.takenCount, endsRequest: isLast,
      isLast: isLast && request.isFinal, isMeasurement: request.action == .measure,
      requestTime: time, frame: frame)
    guard channel.select(selected, bytes) else {
      channel.end(id: request.id, takenCount: pending.totalCount, .memoryFull)
      return true
    }
    // A time lapse counts from its first frame, whose time is not exactly the requested one.
    if pending.takenCount == 0, request.interval > 0 { pending.request.time = frame.time }
    pending.takenCount += 1
    pending.lastIndex = frame.index
    return isLast
  }

  /// Holds a frame, and releases the frames that are no longer among the latest.
  private func keep(_ frame: inout DequeuedBuffer, _ candidate: CandidateFrame) {
    let isOn = options.keepsRecentFrames.load(ordering: .relaxed)
    let limit = isOn ? min(Self.recentCount, maximumHeld.load(ordering: .relaxed)) : 0
    while state.recent.count >= max(1, limit) {
      pool.releaseOnCaptureThread(state.recent.removeFirst().heldBuffer)
    }
    guard limit > 0, let heldBuffer = frame.hold(in: pool) else { return }
    state.recent.append(RecentFrame(frame: candidate, heldBuffer: heldBuffer))
  }

  // MARK: - At the end of the stream

  /// Selects the latest frame for a capture of one photo, if no frame could be nearer.
  private func takesLatest(_ pending: Pending) -> Bool {
    guard pending.request.count == 1, let last = state.recent.last else { return false }
    let age = pending.request.time &- last.frame.time
    guard age >= 0, age < channel.source.period else { return false }
    var pending = pending
    return select(last.frame, pool.bytes(of: last.heldBuffer), for: &pending)
  }
}
