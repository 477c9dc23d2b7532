// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore
import Synchronization

/// The live image of a session's camera, for a view that draws it.
///
/// The view asks for the newest frame whenever it draws. At most one frame waits, in a buffer of the
/// camera, and a newer one replaces it: a slow view never shows an old frame, and costs no other
/// output a frame. Only frames that are asked for are decoded.
///
/// ```swift
/// let preview = try VideoPreview(session: session)
/// try session.startRunning()
/// if let frame = try preview.nextFrame(as: .bgra, maximumWidth: 640, maximumHeight: 360) {
///   draw(frame.image)
/// }
/// ```
///
/// Corresponds to `AVCaptureVideoPreviewLayer`. The connection's rotation, mirroring and zoom apply.
/// Frames of H.264 cannot be shown, because each would need those before it. All calls may come from
/// any thread. None waits for a frame; ``nextFrame(as:maximumWidth:maximumHeight:)`` decodes on the
/// calling thread.
public final class VideoPreview: FrameOutput {
  private struct State {
    var core: SessionCore?
    var sink: PreviewSink?
    var gravity = PreviewGravity.resizeAspect
  }

  private let state = Mutex(State())
  private let counters = DataOutputCounters()
  private let converter = Mutex(SampleConverter())

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
      throw MediaError(
        .notConnected, "the session has no camera to show", recovery: "add a camera first")
    }
    guard FormatDescription(camera.delivery).isConvertible else {
      session.removeOutput(self)
      throw MediaError(
        .notConvertible,
        "frames of \(camera.device.address) depend on others and cannot be shown alone",
        recovery: Recovery("choose a format of MJPEG or uncompressed images", .change(.format)))
    }
  }

  /// Video only.
  public var mediaTypes: [MediaType] { [.video] }

  /// The session to which the preview was added, or nil.
  ///
  /// The preview keeps the inputs of this session alive, and the session itself while it runs. If
  /// the program has dropped a session that does not run, this is a new object for it.
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
  /// A frame that a newer one replaced counts as ``FrameDropReason/frameWasLate``.
  public var ledger: DataOutputLedger { counters.ledger }

  /// Whether a frame waits that was not shown yet.
  public var hasNextFrame: Bool { state.withLock { $0.sink }?.hasFrame ?? false }

  /// Where the present image is in a view.
  ///
  /// - Returns: The geometry with the rotation, mirroring and zoom of the connection, or nil without
  ///   a camera.
  public func geometry(viewWidth: Double, viewHeight: Double) -> PreviewGeometry? {
    guard let connection, let camera = connection.camera else { return nil }
    return PreviewGeometry(
      imageWidth: camera.delivery.width, imageHeight: camera.delivery.height,
      viewWidth: viewWidth, viewHeight: viewHeight, gravity: gravity,
      rotationAngle: connection.videoRotationAngle, isMirrored: connection.isVideoMirrored,
      zoomFactor: connection.geometry.outputFactor(atMicroseconds: camera.driver.microseconds()))
  }

  /// Takes the newest frame, and decodes and scales it for a view.
  ///
  /// - Parameters:
  ///   - format: The pixel format of the image.
  ///   - maximumWidth: The greatest width of the image in pixels.
  ///   - maximumHeight: The greatest height of the image in pixels.
  /// - Returns: The frame, in the greatest size that fits and does not exceed that of the camera, in
  ///   its proportion. Nil if no frame has arrived since the last one.
  /// - Throws: `MediaError` with `.notConvertible` for a pixel format that libswscale cannot write,
  ///   or `.invalidData` for a frame that cannot be decoded. The next call goes on.
  public func nextFrame(
    as format: PixelFormat, maximumWidth: Int = .max, maximumHeight: Int = .max
  ) throws(MediaError) -> PreviewFrame? {
    guard maximumWidth > 0, maximumHeight > 0, let sink = state.withLock({ $0.sink }) else {
      return nil
    }
    let result = sink.withNext { frame, bytes -> Result<PreviewFrame, MediaError> in
      let work = SampleConverter.Work(
        settings: settings(format, of: sink, maximumWidth, maximumHeight),
        rotation: sink.geometry.rotation,
        factor: sink.geometry.outputFactor(atMicroseconds: frame.observation.microseconds))
      let image = converter.withLock { converter in
        Result { try converter.convert(bytes, sink.format, work) }
      }
      switch image {
      case .success(let (image, images)):
        counters.delivered.wrappingAdd(1, ordering: .releasing)
        return .success(
          PreviewFrame(
            image, of: images, sequence: frame.observation.sequence,
            at: MediaTime(microseconds: frame.observation.microseconds)))
      case .failure(let error):
        counters.note(.corrupt)
        return .failure(
          error as? MediaError
            ?? MediaError(
              .invalidData, "could not show a frame: \(error)",
              recovery: Recovery("choose another format", .change(.format))))
      }
    }
    return try result?.get()
  }

  /// The size of the image for a view.
  private func settings(
    _ format: PixelFormat, of sink: PreviewSink, _ maximumWidth: Int, _ maximumHeight: Int
  ) -> VideoDataSettings {
    let isTransposed = sink.geometry.rotation.isTransposed
    let (width, height) =
      isTransposed
      ? (sink.format.height, sink.format.width) : (sink.format.width, sink.format.height)
    let rect = PreviewGeometry(
      imageWidth: width, imageHeight: height, viewWidth: Double(min(width, maximumWidth)),
      viewHeight: Double(min(height, maximumHeight))
    ).imageRect
    return VideoDataSettings(
      pixelFormat: format, width: max(1, Int(rect.width.rounded())),
      height: max(1, Int(rect.height.rounded())))
  }

  // MARK: - FrameOutput

  package func sink(for connection: CaptureConnection) throws(MediaError) -> (any FrameSink)? {
    guard connection.mediaType == .video, let camera = connection.camera,
      FormatDescription(camera.delivery).isConvertible
    else { return nil }
    return state.withLock { state in
      // If the device was reopened, it has a new pool, and the sink belongs to the old one.
      if let sink = state.sink, sink.pool === camera.pool, sink.gate === connection.gate {
        return sink
      }
      let sink = PreviewSink(camera, connection, counters)
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

/// A frame that a preview shows.
///
/// When it is released, the memory of its image is used again.
public final class PreviewFrame: Sendable {
  /// The image, rotated, mirrored and cropped as the connection asks.
  public let image: PixelBuffer
  /// The driver's frame counter, which wraps at 2^32.
  public let sequence: UInt32
  /// The capture time, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  private let pool: PixelBufferPool

  init(_ image: PixelBuffer, of pool: PixelBufferPool, sequence: UInt32, at time: MediaTime) {
    self.image = image
    self.pool = pool
    self.sequence = sequence
    presentationTimeStamp = time
  }

  deinit { pool.recycle(image) }
}
