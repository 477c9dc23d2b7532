// SPDX-License-Identifier: Apache-2.0

import Dispatch
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
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
/// apply. H.264 frames cannot be shown, because decoding one needs the frames before it. All calls
/// may come from any thread. Only ``waitForNextFrame(milliseconds:)`` waits;
/// ``nextFrame(as:maximumWidth:maximumHeight:)`` decodes on the calling thread.
public final class VideoPreview: FrameOutput {
  private struct State {
    var core: SessionCore?
    var sink: PreviewSink?
    var gravity = PreviewGravity.resizeAspect
  }

  private let state = Mutex(State())
  private let counters = DataOutputCounters()
  private let arrivalCounter = ArrivalCounter()
  private let decoder = PreviewDecoder()

  /// Creates a preview, to be added to a session.
  public init() {}

  /// Creates a preview and adds it to a session.
  ///
  /// - Throws: `MediaError` with `.notConnected` if the session has no camera, or
  ///   `.notConvertible` for a camera whose codec uses inter-frame prediction.
  public convenience init(session: CaptureSession) throws(MediaError) {
    self.init()
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

  /// The counts of frames by outcome so far.
  ///
  /// A frame that a newer frame replaced counts as ``FrameDropReason/frameWasLate``.
  public var ledger: DataOutputLedger { counters.ledger }

  /// The counts of frames that have arrived at the preview so far, and the newest frame's time.
  public var arrivals: PreviewArrivals { arrivalCounter.arrivals }

  /// Whether a frame that was not shown yet is available.
  public var hasNextFrame: Bool { state.withLock { $0.sink }?.hasFrame ?? false }

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
    if let sink = state.withLock({ $0.sink }) { return sink.waitForFrame(until: deadline) }
    // Without a camera no frame can arrive, so this call only waits for the timeout.
    _ = DispatchSemaphore(value: 0).wait(timeout: deadline)
    return false
  }

  /// Returns the position of the current image in a view.
  ///
  /// - Returns: The geometry with the rotation, mirroring and zoom of the connection, or nil without
  ///   a camera.
  public func geometry(viewWidth: Double, viewHeight: Double) -> PreviewGeometry? {
    guard let connection else { return nil }
    return PreviewGeometry(
      of: connection, viewWidth: viewWidth, viewHeight: viewHeight, gravity: gravity)
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
    guard maximumWidth > 0, maximumHeight > 0, let sink = state.withLock({ $0.sink }) else {
      return nil
    }
    let result = sink.withNext { frame, bytes in
      let source = PreviewDecoder.Source(
        observation: frame.observation, exposure: frame.exposure, format: sink.format,
        geometry: sink.geometry)
      return decoder.frame(bytes, source, as: format, maximumWidth, maximumHeight)
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

  // MARK: - FrameOutput

  package func sink(for connection: CaptureConnection) throws(MediaError) -> (any FrameSink)? {
    guard connection.mediaType == .video, let camera = connection.camera,
      FormatDescription(camera.delivery).isConvertible
    else { return nil }
    return state.withLock { state in
      // If the device was reopened, it has a new buffer pool. The sink belongs to the old pool and
      // is not reused.
      if let sink = state.sink, sink.pool === camera.pool, sink.gate === connection.gate {
        return sink
      }
      let sink = PreviewSink(camera, connection, counters, arrivalCounter)
      state.sink = sink
      return sink
    }
  }

  package func canTransform(_ format: FormatDescription) -> Bool { format.isConvertible }

  package func didJoin(_ session: CaptureSession?) {
    state.withLock { state in
      state.core = session?.core
      if session == nil { state.sink = nil }
    }
  }
}
