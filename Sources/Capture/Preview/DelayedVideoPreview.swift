// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
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
    var core: SessionCore?
    var sink: DelaySink?
    var gravity = PreviewGravity.resizeAspect
    var schedule: PreviewSchedule
    /// Whether the schedule of the delay starts anew at the next request for a frame.
    var isNew = true
    /// The number of the last shown frame in the sink's ring, or nil before the first.
    var shown: Int?
  }

  /// The greatest delay, for which memory is reserved.
  public let maximumDelay: MediaTime
  private let memoryLimit: Int
  private let state: Mutex<State>
  private let counters = DataOutputCounters()
  private let arrivalCounter = ArrivalCounter()
  private let decoder = PreviewDecoder()

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
    try session.addOutput(self)
    guard let camera else {
      session.removeOutput(self)
      throw .noCameraToShow
    }
    guard FormatDescription(camera.delivery).isConvertible else {
      session.removeOutput(self)
      throw .notShownAlone(camera.device.address)
    }
  }

  /// Video only.
  public var mediaTypes: [MediaType] { [.video] }

  /// The session to which the preview was added, or nil.
  ///
  /// The preview keeps the inputs of its session alive. It keeps the session object alive only
  /// while the session runs. If the program has released a stopped session, this property returns a
  /// new object for the same session.
  public var session: CaptureSession? { state.withLock { $0.core }?.session }

  /// The connection from the camera, or nil without a camera.
  public var connection: CaptureConnection? {
    session?.connections.first { $0.output === self }
  }

  private var camera: DeviceInput? { connection?.camera }

  /// How the image is placed in a view; used by ``geometry(viewWidth:viewHeight:)``.
  ///
  /// Default: ``PreviewGravity/resizeAspect``.
  public var gravity: PreviewGravity {
    get { state.withLock { $0.gravity } }
    set { state.withLock { $0.gravity = newValue } }
  }

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
  public var ledger: DataOutputLedger { counters.ledger }

  /// The counts of frames that have arrived at the preview so far, and the newest frame's time.
  public var arrivals: PreviewArrivals { arrivalCounter.arrivals }

  /// The memory that stored frames use, in bytes, rounded up to whole blocks of at most 2 MiB.
  public var memoryUse: Int { state.withLock { $0.sink?.queue.boundBytes ?? 0 } }

  /// Returns the position of the current image in a view.
  ///
  /// - Returns: The geometry with the rotation, mirroring and zoom of the connection, or nil without
  ///   a camera.
  public func geometry(viewWidth: Double, viewHeight: Double) -> PreviewGeometry? {
    guard let connection else { return nil }
    return PreviewGeometry(
      of: connection, viewWidth: viewWidth, viewHeight: viewHeight, gravity: gravity)
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
      guard let sink = state.sink, let frame = due(at: time.wholeMicroseconds, &state) else {
        return nil
      }
      let source = PreviewDecoder.Source(
        observation: frame.observation, exposure: ExposureInForce(), format: sink.format,
        geometry: sink.geometry)
      return decoder.frame(frame.bytes, source, as: format, maximumWidth, maximumHeight)
    }
    switch result {
    case .success(let frame)?:
      counters.delivered.wrappingAdd(1, ordering: .releasing)
      return frame
    case .failure(let error)?:
      counters.note(.corrupt)
      throw error
    case nil: return nil
    }
  }

  /// Returns the frame to show, and releases the frames before it.
  private func due(at time: Int64, _ state: inout State) -> QueuedFrame? {
    guard let queue = state.sink?.queue else { return nil }
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
      counters.note(.frameWasLate)
    }
    queue.release(before: end)
  }

  // MARK: - FrameOutput

  package func sink(for connection: CaptureConnection) throws(MediaError) -> (any FrameSink)? {
    guard connection.mediaType == .video, let camera = connection.camera,
      FormatDescription(camera.delivery).isConvertible
    else { return nil }
    return try state.withLock { (state) throws(MediaError) -> DelaySink in
      // If the device was reopened, it has a new buffer pool. The sink belongs to the old pool
      // and is not reused.
      if let sink = state.sink, sink.pool === camera.pool, sink.gate === connection.gate {
        return sink
      }
      let sink = DelaySink(camera, connection, try ring(for: camera), counters, arrivalCounter)
      if let old = state.sink { release(before: old.queue.endNumber, of: old.queue, state.shown) }
      (state.sink, state.shown) = (sink, nil)
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

  package func canTransform(_ format: FormatDescription) -> Bool { format.isConvertible }

  package func didJoin(_ session: CaptureSession?) {
    state.withLock { state in
      state.core = session?.core
      if session == nil { (state.sink, state.shown) = (nil, nil) }
    }
  }
}
