// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore
import Synchronization

/// The sink of a photo output, which the capture thread uses.
///
/// The sink holds the latest frames in the driver's buffers, so that a photo can be a frame from
/// before its request. Chosen frames are copied, so that photos that wait to be encoded occupy no
/// buffer of the driver.
final class PhotoSink: FrameSink {
  let channel: PhotoChannel
  private let gate: ConnectionGate
  private let options: Options
  /// The greatest number of the driver's buffers that this sink may hold.
  private let maximumHeld = Atomic<Int>(0)
  // Accessed only by the capture thread and, once that has ended, by the thread that ends the sink.
  private nonisolated(unsafe) var state = State()

  /// Settings that other threads may change while frames flow.
  final class Options: Sendable {
    let keepsRecentFrames = Atomic<Bool>(true)
    /// The time from which frames are available for the movies of Live Photos, in microseconds.
    ///
    /// `Int64.max` until this time is known, and `Int64.min` if there can be no movies.
    let ringStart = Atomic<Int64>(.max)
    /// Whether this is the only output of the session.
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
    /// The index of the frame that was chosen last.
    var lastIndex: Int64 = -1

    /// The number of photos taken so far in the whole capture.
    var totalCount: Int { request.firstIndex + takenCount }
    var isInBurst: Bool { takenCount > 0 && request.interval == 0 }
  }

  private struct State {
    /// The latest frames, whose buffers the sink holds, oldest first.
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
  /// A single frame would be enough if each request reached the capture thread at once. More frames
  /// are held because the requesting thread may not be scheduled for some time.
  private static let recentCount = 3

  init(_ channel: PhotoChannel, gate: ConnectionGate, options: Options) {
    (self.channel, self.gate, self.options) = (channel, gate, options)
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
      // A file or another source that is faster than real time would reach its end before the first
      // request. If no other output needs its frames, the source waits for a request.
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
      // The entry of the pending capture is copied, because choosing a frame reads other parts of
      // the state.
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
  /// Returns true if the capture needs no more frames.
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
      // In a time lapse whose interval is shorter than a frame period, no frame may be chosen
      // twice.
      guard state.recent[position].frame.index > pending.lastIndex else {
        return select(current, bytes, for: &pending)
      }
      // In a burst, the frames that follow the first one are chosen, too.
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
  /// Returns true if the capture needs no more frames.
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
    // The time of the first frame differs slightly from the requested time. A time lapse counts its
    // intervals from the time of the first frame.
    if pending.takenCount == 0, request.interval > 0 { pending.request.time = frame.time }
    pending.takenCount += 1
    pending.lastIndex = frame.index
    return isLast
  }

  /// Holds the buffer of a frame, and releases the buffers of frames that are no longer among the
  /// latest.
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

  /// Selects the latest frame for a pending capture of a single photo, if a later frame could not
  /// have been nearer to the request.
  ///
  /// Returns whether it was selected.
  private func takesLatest(_ pending: Pending) -> Bool {
    guard pending.request.count == 1, let last = state.recent.last else { return false }
    let age = pending.request.time &- last.frame.time
    guard age >= 0, age < channel.source.period else { return false }
    var pending = pending
    return select(last.frame, pool.bytes(of: last.heldBuffer), for: &pending)
  }
}

/// Chooses the frame for a photo that was requested at a time.
///
/// The last frame before the request is chosen, because the program may have shown that frame. If
/// it is more than a frame period older than the request, frames were lost, and the nearest frame
/// is chosen.
enum FrameChoice: Equatable {
  /// No choice yet, because a later frame may be a better choice.
  case wait
  /// The frame that just arrived.
  case current
  /// An earlier frame, by its index in the array `recent` of held frames.
  case recent(Int)

  /// Decides which frame to choose, when a frame arrives.
  ///
  /// - Parameters:
  ///   - request: The requested time. All times are in microseconds of the driver's clock.
  ///   - current: The time of the frame that just arrived.
  ///   - arrival: The time at which that frame arrived.
  ///   - recent: The times of the earlier frames whose buffers are still held, oldest first.
  ///   - period: The frame period, rounded down.
  /// - Returns: The choice.
  static func decide(
    _ request: Int64, current: Int64, arrival: Int64, recent: some RandomAccessCollection<Int64>,
    period: Int64
  ) -> FrameChoice {
    if current <= request {
      // The next frame comes one period later. If that is after the request, the current frame is
      // the last one before the request.
      if request &- current < period { return .current }
      // The driver's timestamps may jump back. Without this limit, the request might wait for hours.
      return arrival &- request > max(longestWait, 4 &* period) ? .current : .wait
    }
    var position = recent.count
    for time in recent.reversed() {
      position -= 1
      guard time <= request else { continue }
      let age = request &- time
      return age < period + period / 4 || age <= current &- request ? .recent(position) : .current
    }
    return .current
  }

  /// The greatest time to wait, after a request, for frames from before the request, in
  /// microseconds.
  private static let longestWait: Int64 = 1_000_000
}
