// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import OvercrankCapture
public import OvercrankMediaCore
import Synchronization

/// The live image of a session's camera, for a view that draws it.
///
/// The view requests the newest frame whenever it draws. At most one frame waits, in a buffer of
/// the camera, until a newer frame replaces it. A slow view therefore never shows an old frame, and
/// other outputs lose no frames. Only frames that the view requests are decoded.
///
/// ```swift
/// let preview = try VideoPreview(session: session)
/// try session.startRunning()
/// if let frame = try preview.nextFrame(as: .bgra, maximumWidth: 640, maximumHeight: 360) {
///   draw(frame.image)
/// }
/// ```
///
/// Corresponds to `AVCaptureVideoPreviewLayer`. The connection's rotation, mirroring and zoom
/// apply. The frames of H.264 depend on others, so all of them are decoded, on a thread beside the
/// camera's stream. Those that come too late are skipped. All calls may come from any thread. Only
/// ``waitForNextFrame(milliseconds:)`` waits; ``nextFrame(as:maximumWidth:maximumHeight:)`` decodes on
/// the calling thread.
public final class VideoPreview: FrameOutput {
  private let core = PreviewCore<PreviewSink>()

  /// Creates a preview, to be added to a session.
  public init() {}

  /// Creates a preview and adds it to a session.
  ///
  /// - Throws: `MediaError` with `.notConnected` if the session has no camera, or
  ///   `.notConvertible` for a camera whose frames cannot be decoded.
  public convenience init(session: CaptureSession) throws(MediaError) {
    self.init()
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

  /// How the image is placed in a view; used by ``geometry(viewWidth:viewHeight:)``.
  ///
  /// Default: ``PreviewGravity/resizeAspect``.
  public var gravity: PreviewGravity {
    get { core.gravity }
    set { core.gravity = newValue }
  }

  /// The counts of frames by outcome so far.
  ///
  /// A frame that a newer frame replaced counts as ``FrameDropReason/frameWasLate``.
  public var ledger: DataOutputLedger { core.counters.ledger }

  /// The counts of frames that have arrived at the preview so far, and the newest frame's time.
  public var arrivals: PreviewArrivals { core.arrivals.arrivals }

  /// Whether a frame that was not shown yet is available.
  public var hasNextFrame: Bool { core.sink?.hasFrame ?? false }

  /// Blocks until a frame that was not shown yet is available.
  ///
  /// The capture thread wakes the calling thread, so a frame is shown sooner than by a loop that
  /// sleeps. Do not call this method on a thread that must not block, such as a thread of Swift's
  /// concurrency pool.
  ///
  /// - Parameter timeout: The longest time to wait, in milliseconds; at most an hour. Zero or less
  ///   does not wait.
  /// - Returns: True if a frame waits, and false after the timeout or at the end of the stream.
  public func waitForNextFrame(milliseconds timeout: Int) -> Bool {
    let deadline = DispatchTime.now() + .milliseconds(min(3_600_000, max(0, timeout)))
    if let sink = core.sink { return sink.waitForFrame(until: deadline) }
    // Without a camera no frame can arrive, so this call only waits for the timeout.
    _ = DispatchSemaphore(value: 0).wait(timeout: deadline)
    return false
  }

  /// Returns the position of the current image in a view.
  ///
  /// - Returns: The geometry with the rotation, mirroring and zoom of the connection, or nil without
  ///   a camera.
  public func geometry(viewWidth: Double, viewHeight: Double) -> PreviewGeometry? {
    core.geometry(of: self, viewWidth: viewWidth, viewHeight: viewHeight)
  }

  /// Takes the newest frame, and decodes and scales it for a view.
  ///
  /// - Parameters:
  ///   - format: The pixel format of the image.
  ///   - maximumWidth: The greatest width of the image in pixels.
  ///   - maximumHeight: The greatest height of the image in pixels.
  /// - Returns: The frame, with the aspect ratio of the camera and the greatest size that fits the
  ///   maximum and does not exceed the camera's size. Nil if no frame has arrived since the last
  ///   call.
  /// - Throws: `MediaError` with `.notConvertible` for a pixel format that libswscale cannot write,
  ///   or `.invalidData` for a frame that cannot be decoded. The next call continues with a later
  ///   frame.
  public func nextFrame(
    as format: PixelFormat, maximumWidth: Int = .max, maximumHeight: Int = .max
  ) throws(MediaError) -> PreviewFrame? {
    guard maximumWidth > 0, maximumHeight > 0, let sink = core.sink else { return nil }
    return try sink.withNext { frame, bytes in
      core.image(
        bytes, of: frame.observation, frame.exposure, sink.stream, as: format, maximumWidth,
        maximumHeight)
    }?.get()
  }

  // MARK: - FrameOutput

  package func sink(
    for connection: CaptureConnection, from camera: DeviceInput
  ) throws(MediaError) -> (any FrameSink)? {
    try core.sink(for: connection, from: camera) {
      PreviewSink(PreviewStream(camera, connection), core.counters, core.arrivals)
    }
  }

  package var isPreview: Bool { true }
  package var decodesFrames: Bool { true }

  package func canTransform(_ format: FormatDescription) -> Bool { format.isConvertible }

  package func didJoin(_ session: CaptureSession?) { core.didJoin(session) }
}

/// The sink of a preview, which only stores the newest frame on the capture thread.
final class PreviewSink: PreviewStreamSink {
  let stream: PreviewStream
  private let slot: LatestFrameSlot<Void>
  private let arrivals: ArrivalCounter
  /// Signaled when a frame arrives and no other frame was waiting, and at the end of the stream.
  ///
  /// The view can wait for this signal instead of polling.
  private let arrived = DispatchSemaphore(value: 0)
  /// Whether the stream has ended and no frame has arrived since.
  private let hasEnded = Atomic<Bool>(false)

  init(_ stream: PreviewStream, _ counters: DataOutputCounters, _ arrivals: ArrivalCounter) {
    (self.stream, self.arrivals) = (stream, arrivals)
    slot = LatestFrameSlot(of: stream.pool, counters)
  }

  // MARK: - The capture thread

  func take(_ frame: inout DequeuedBuffer) -> StopReason? {
    guard stream.gate.isOpen.load(ordering: .relaxed) else { return nil }
    hasEnded.store(false, ordering: .relaxed)
    arrivals.note(frame.observation)
    if slot.put(&frame, ()) == .filled { arrived.signal() }
    return nil
  }

  /// Always true, because a preview never makes a camera wait.
  func hasSpace(for byteCount: Int) -> Bool { true }

  var keeping: FrameKeeping { .always }

  func allow(keeping count: Int) { slot.allow(keeping: count) }

  func end(_ end: CaptureEnd) {
    hasEnded.store(true, ordering: .releasing)
    arrived.signal()
    slot.clear()
  }

  // MARK: - The thread that draws

  /// Whether a frame waits to be drawn.
  var hasFrame: Bool { !slot.isEmpty }

  /// Blocks until a frame is available to be drawn.
  ///
  /// - Returns: False if no frame arrived before the deadline or the end of the stream.
  func waitForFrame(until deadline: DispatchTime) -> Bool {
    while !hasFrame {
      guard !hasEnded.load(ordering: .acquiring), arrived.wait(timeout: deadline) == .success
      else { return hasFrame }
    }
    return true
  }

  /// Calls a closure with the waiting frame, and then returns the frame's buffer to the driver.
  ///
  /// - Returns: The result, or nil if no frame waits.
  func withNext<Result>(
    _ body: (LatestFrameSlot<Void>.Frame, UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    slot.withNext { frame, bytes in
      // Consumes the old signals. Otherwise they would accumulate if the view never calls
      // `waitForFrame(until:)`.
      while arrived.wait(timeout: .now()) == .success {}
      return body(frame, bytes)
    }
  }
}
