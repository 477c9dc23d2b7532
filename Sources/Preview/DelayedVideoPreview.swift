// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankFrameAccounting
public import OvercrankMediaCore
import Synchronization

/// The image of a session's camera some seconds ago: a delayed mirror.
///
/// Frames are stored as the camera delivered them, so those of an MJPEG camera stay compressed in
/// memory. Only frames that the view requests are decoded. Other outputs of the session are not
/// affected.
///
/// ```swift
/// let mirror = try DelayedVideoPreview(session: session, delay: MediaTime(seconds: 12))
/// try session.startRunning()
/// let frame = try mirror.nextFrame(as: .bgra, at: now)
/// ```
///
/// With a speed below 1, the delay grows from zero in slow motion. When the delay has reached
/// ``delay``, the preview jumps back to the newest frame. H.264 frames cannot be shown, because
/// decoding one needs the frames before it.
///
/// All calls may come from any thread, and none waits for a frame. The view must request a frame at
/// least once a second. Otherwise the memory may fill, and new frames are dropped with
/// ``FrameDropReason/outOfBuffers``.
public final class DelayedVideoPreview: FrameOutput {
  private struct State {
    var schedule: PreviewSchedule
    /// Whether the schedule of the delay starts anew at the next request for a frame.
    var isNew = true
    /// The number of the last shown frame in the sink's ring, or nil before the first.
    var shown: Int?
  }

  /// The greatest delay, for which memory is reserved.
  public let maximumDelay: MediaTime
  private let memoryLimit: Int
  private let core = PreviewCore<DelaySink>()
  private let state: Mutex<State>

  /// Creates a preview, to be added to a session.
  ///
  /// - Parameters:
  ///   - delay: The delay, zero or more.
  ///   - speed: The speed, above zero and at most 1.
  ///   - maximumDelay: The greatest delay that can be set later. Nil, or a value below `delay`,
  ///     selects `delay`.
  ///   - memoryLimit: The greatest number of bytes for stored frames. If this is too little for the
  ///     delay, the delay becomes shorter. Only stored frames use memory.
  public init(
    delay: MediaTime, speed: Speed = .normal, maximumDelay: MediaTime? = nil,
    memoryLimit: Int = 4 << 30
  ) {
    precondition(
      delay >= .zero && speed <= .normal, "the delay must not be negative, and the speed at most 1")
    self.maximumDelay = max(delay, maximumDelay ?? delay)
    self.memoryLimit = memoryLimit
    state = Mutex(
      State(schedule: PreviewSchedule(delay: delay.wholeMicroseconds, speed: speed, start: 0)))
  }

  /// Creates a preview and adds it to a session.
  ///
  /// - Throws: `MediaError` with `.notConnected` if the session has no camera, `.notConvertible` for
  ///   a camera whose codec uses inter-frame prediction, or `.outOfMemory`.
  public convenience init(
    session: CaptureSession, delay: MediaTime, speed: Speed = .normal,
    maximumDelay: MediaTime? = nil, memoryLimit: Int = 4 << 30
  ) throws(MediaError) {
    self.init(delay: delay, speed: speed, maximumDelay: maximumDelay, memoryLimit: memoryLimit)
    try session.addPreview(self)
  }

  /// Video only.
  public var mediaTypes: [MediaType] { [.video] }

  /// The session to which the preview was added, or nil.
  ///
  /// The preview keeps the inputs of its session alive. It keeps the session object alive only
  /// while the session runs. If the program has released a stopped session, this property returns a
  /// new object for the same session.
  public var session: CaptureSession? { core.session }

  /// The connection from the camera, or nil without a camera.
  public var connection: CaptureConnection? { core.connection(to: self) }

  /// The constant delay at normal speed, or the greatest delay in slow motion.
  public var delay: MediaTime {
    MediaTime(microseconds: state.withLock { $0.schedule.delay })
  }

  /// The playback speed of the preview, at most 1.
  public var speed: Speed { state.withLock { $0.schedule.speed } }

  /// Changes the delay and the speed, starting with the next frame.
  ///
  /// A shorter delay takes effect at once. For a longer delay, the image freezes until the shown
  /// frame is old enough, because older frames are already released. A change to slow motion begins
  /// with the newest frame.
  ///
  /// - Parameters:
  ///   - delay: The delay, from zero to ``maximumDelay``; greater values are limited to it.
  ///   - speed: The speed, above zero and at most 1.
  public func setDelay(_ delay: MediaTime, speed: Speed = .normal) {
    precondition(
      delay >= .zero && speed <= .normal, "the delay must not be negative, and the speed at most 1")
    let microseconds = min(delay, maximumDelay).wholeMicroseconds
    state.withLock { state in
      state.schedule = PreviewSchedule(delay: microseconds, speed: speed, start: 0)
      state.isNew = true
    }
  }

  /// The counts of frames by outcome so far.
  ///
  /// A frame that was skipped counts as ``FrameDropReason/frameWasLate``. Frames in memory count as
  /// waiting.
  public var ledger: DataOutputLedger { core.counters.ledger }

  /// The counts of frames that have arrived at the preview so far, and the newest frame's time.
  public var arrivals: PreviewArrivals { core.arrivals.arrivals }

  /// The memory that stored frames use, in bytes, rounded up to whole blocks of at most 2 MiB.
  public var memoryUse: Int { core.sink?.queue.boundBytes ?? 0 }

  /// How the image is placed in a view; used by ``geometry(viewWidth:viewHeight:)``.
  ///
  /// Default: ``PreviewGravity/resizeAspect``.
  public var gravity: PreviewGravity {
    get { core.gravity }
    set { core.gravity = newValue }
  }

  /// Returns the position of the current image in a view.
  ///
  /// - Returns: The geometry with the rotation, mirroring and zoom of the connection, or nil without
  ///   a camera.
  public func geometry(viewWidth: Double, viewHeight: Double) -> PreviewGeometry? {
    core.geometry(of: self, viewWidth: viewWidth, viewHeight: viewHeight)
  }

  /// Takes the frame that is due at a time, and decodes and scales it for a view.
  ///
  /// The frame that is due is the newest one captured at or before `time` minus the delay. Earlier
  /// frames are released.
  ///
  /// - Parameters:
  ///   - format: The pixel format of the image.
  ///   - maximumWidth: The greatest width of the image in pixels.
  ///   - maximumHeight: The greatest height of the image in pixels.
  ///   - time: The time at which the view shows the frame, on the capture clock
  ///     (`CLOCK_MONOTONIC`).
  /// - Returns: The frame, or nil if the last returned frame is still the one that is due.
  /// - Throws: `MediaError` with `.notConvertible` for a pixel format that libswscale cannot write,
  ///   or `.invalidData` for a frame that cannot be decoded. The next call continues with a later
  ///   frame.
  public func nextFrame(
    as format: PixelFormat, maximumWidth: Int = .max, maximumHeight: Int = .max, at time: MediaTime
  ) throws(MediaError) -> PreviewFrame? {
    guard maximumWidth > 0, maximumHeight > 0 else { return nil }
    // The ring allows only one reader at a time, so the lock is held while a frame in the ring is
    // decoded. The capture thread does not use this lock.
    let result = state.withLock { state -> Result<PreviewFrame, MediaError>? in
      guard let sink = core.sink, let frame = due(at: time.wholeMicroseconds, sink.queue, &state)
      else { return nil }
      return core.image(
        frame.bytes, of: frame.observation, ExposureInForce(), sink.stream, as: format,
        maximumWidth, maximumHeight)
    }
    return try result?.get()
  }

  /// Returns the frame to show, and releases the frames before it.
  private func due(at time: Int64, _ queue: FrameQueue, _ state: inout State) -> QueuedFrame? {
    if state.isNew { (state.schedule.start, state.isNew) = (time, false) }
    let wanted = state.schedule.shownTime(at: time)
    var number = queue.startNumber
    while let next = queue[number + 1], next.observation.microseconds <= wanted { number += 1 }
    release(before: number, of: queue, state.shown)
    // If the memory is nearly full, the oldest frames are skipped. The preview then shows a frame
    // before its delay has passed.
    var isShort = false
    while queue.isNearlyFull, !queue.isReleasePending, queue[number + 1] != nil {
      number += 1
      isShort = true
      release(before: number, of: queue, state.shown)
    }
    guard state.shown != number, let frame = queue[number],
      isShort || frame.observation.microseconds <= wanted
    else { return nil }
    state.shown = number
    return frame
  }

  private func release(before end: Int, of queue: FrameQueue, _ shown: Int?) {
    for number in queue.startNumber..<max(end, queue.startNumber) where number != shown {
      core.counters.note(.frameWasLate)
    }
    queue.release(before: end)
  }

  // MARK: - FrameOutput

  // The delay keeps the camera's own frames in memory, so they must be decoded alone.
  package var decodesFrames: Bool { false }

  package func sink(
    for connection: CaptureConnection, from camera: DeviceInput
  ) throws(MediaError) -> (any FrameSink)? {
    try state.withLock { (state) throws(MediaError) -> DelaySink? in
      let old = core.sink
      let sink = try core.sink(for: connection, from: camera) { () throws(MediaError) in
        DelaySink(
          PreviewStream(camera, connection), try ring(for: camera), core.counters, core.arrivals)
      }
      if let old, let sink, sink !== old {
        release(before: old.queue.endNumber, of: old.queue, state.shown)
        state.shown = nil
      }
      return sink
    }
  }

  /// Reserves the memory for a camera's frames.
  ///
  /// The memory holds one second more than the greatest delay, because the view may request frames
  /// late.
  private func ring(for camera: DeviceInput) throws(MediaError) -> FrameQueue {
    let rate = camera.negotiatedFrameRate.doubleValue
    let frames = (maximumDelay.doubleValue + 1) * rate / FrameQueue.nearlyFull + 16
    let bytes = min(frames * Double(camera.maximumByteCount), Double(memoryLimit))
    let least = 8 * (camera.maximumByteCount + 4_096)
    // There is space for twice as many frames as the nominal rate delivers, because a camera may
    // exceed its nominal rate.
    return try FrameQueue(
      capacity: max(least, Int(bytes)), largestFrame: camera.maximumByteCount,
      recordCount: Int(min(frames * 2, 1e7)) + 1_024)
  }

  package var isPreview: Bool { true }

  package func canTransform(_ format: FormatDescription) -> Bool { format.isConvertible }

  package func didJoin(_ session: CaptureSession?) {
    state.withLock { state in
      core.didJoin(session)
      if session == nil { state.shown = nil }
    }
  }
}

/// The sink of a delayed preview, which copies each frame into a ring as the camera delivered it.
final class DelaySink: PreviewStreamSink {
  let stream: PreviewStream
  let queue: FrameQueue
  private let counters: DataOutputCounters
  private let arrivals: ArrivalCounter

  init(
    _ stream: PreviewStream, _ queue: FrameQueue, _ counters: DataOutputCounters,
    _ arrivals: ArrivalCounter
  ) {
    (self.stream, self.queue) = (stream, queue)
    (self.counters, self.arrivals) = (counters, arrivals)
  }

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard stream.gate.isOpen.load(ordering: .relaxed) else { return nil }
    counters.offered.wrappingAdd(1, ordering: .relaxed)
    arrivals.note(frame.observation)
    if !frame.isWhole {
      counters.note(.corrupt)
    } else if !queue.push(QueuedFrame(observation: frame.observation, bytes: frame.bytes)) {
      counters.note(.outOfBuffers)
    }
    return nil
  }

  // This method does nothing, because the frames stay available to the view after the end of the
  // stream.
  func end(_ end: CaptureEnd) {}
}

/// The schedule of a delayed preview: which capture time it shows at which time.
///
/// ```
///   speed 1     delay ─────────────────      speed < 1   delay    ╱│  ╱│  ╱
///                   0 ─────────────▶ time                    0 ╱  │╱  │╱  ▶ time
/// ```
struct PreviewSchedule: Hashable, Sendable {
  /// The constant delay at normal speed, or the greatest delay in slow motion, in microseconds.
  var delay: Int64
  var speed: Speed
  /// The time at which the schedule begins, in microseconds of the capture clock.
  var start: Int64

  /// Returns the capture time of the frame to show at a time, both in microseconds.
  ///
  /// In slow motion, the delay grows from zero. When the delay has reached its greatest value, it
  /// starts at zero again, with the newest frame.
  func shownTime(at time: Int64) -> Int64 {
    guard speed < .normal, delay > 0 else { return time - delay }
    let loss = 1 - speed.fraction
    let elapsed = Int128(max(0, time - start))
    let behind = elapsed * loss.numerator / loss.denominator % Int128(delay)
    return time - Int64(behind)
  }
}
