// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankFrameAccounting
import OvercrankLibAV
public import OvercrankMediaCore
import OvercrankRaster
import Synchronization

/// A sink that stores the frames of a camera for a preview.
protocol PreviewStreamSink: FrameSink {
  var stream: PreviewStream { get }
}

/// The stream of a camera that a preview shows.
struct PreviewStream: Sendable {
  let pool: BufferPool
  let gate: ConnectionGate
  let format: FormatDescription
  let geometry: ConnectionGeometry

  init(_ camera: DeviceInput, _ connection: CaptureConnection) {
    pool = camera.pool
    gate = connection.gate
    format = FormatDescription(camera.delivery)
    geometry = connection.geometry
  }
}

/// The common part of all previews: the session, the sink, the placement in a view, the counts and
/// the decoder.
///
/// All calls may come from any thread.
final class PreviewCore<Sink: PreviewStreamSink>: Sendable {
  private struct State {
    var session: SessionCore?
    var sink: Sink?
    var gravity = PreviewGravity.resizeAspect
  }

  private let state = Mutex(State())
  let counters = DataOutputCounters()
  let arrivals = ArrivalCounter()
  private let decoder = PreviewDecoder()

  var session: CaptureSession? { state.withLock { $0.session }?.session }
  var sink: Sink? { state.withLock { $0.sink } }
  var gravity: PreviewGravity {
    get { state.withLock { $0.gravity } }
    set { state.withLock { $0.gravity = newValue } }
  }

  func connection(to preview: any CaptureOutput) -> CaptureConnection? {
    session?.connections.first { $0.output === preview }
  }

  func geometry(
    of preview: any CaptureOutput, viewWidth: Double, viewHeight: Double
  ) -> PreviewGeometry? {
    connection(to: preview).flatMap {
      PreviewGeometry(of: $0, viewWidth: viewWidth, viewHeight: viewHeight, gravity: gravity)
    }
  }

  /// Decodes and counts a frame.
  func image(
    _ bytes: UnsafeRawBufferPointer, of observation: FrameObservation, _ exposure: ExposureInForce,
    _ stream: PreviewStream, as format: PixelFormat, _ maximumWidth: Int, _ maximumHeight: Int
  ) -> Result<PreviewFrame, MediaError> {
    let source = PreviewDecoder.Source(
      observation: observation, exposure: exposure, format: stream.format,
      geometry: stream.geometry)
    let image = decoder.frame(bytes, source, as: format, maximumWidth, maximumHeight)
    switch image {
    case .success: counters.delivered.wrappingAdd(1, ordering: .releasing)
    case .failure: counters.note(.corrupt)
    }
    return image
  }

  // MARK: - FrameOutput

  /// Returns the sink for a connection, or nil if the camera's frames cannot be shown.
  ///
  /// If there is none for the buffer pool of the camera, `make` creates one.
  func sink(
    for connection: CaptureConnection, from camera: DeviceInput,
    _ make: () throws(MediaError) -> Sink
  ) throws(MediaError) -> Sink? {
    guard FormatDescription(camera.delivery).isConvertible else { return nil }
    return try state.withLock { (state) throws(MediaError) -> Sink in
      // If the device was reopened, it has a new buffer pool. The sink belongs to the old pool and
      // is not reused.
      if let sink = state.sink, sink.stream.pool === camera.pool,
        sink.stream.gate === connection.gate
      {
        return sink
      }
      let sink = try make()
      state.sink = sink
      return sink
    }
  }

  func didJoin(_ session: CaptureSession?) {
    state.withLock { state in
      state.session = session?.core
      if session == nil { state.sink = nil }
    }
  }
}

extension CaptureSession {
  /// Adds a preview, if the session has a camera whose frames can be shown.
  func addPreview(_ preview: any FrameOutput) throws(MediaError) {
    try addOutput(preview)
    do throws(MediaError) {
      guard let camera = connections.first(where: { $0.output === preview })?.camera else {
        throw MediaError(
          .notConnected, "the session has no camera to show", recovery: "add a camera first")
      }
      let delivery = preview.decodesFrames ? camera.imageDelivery : camera.delivery
      guard FormatDescription(delivery).isConvertible else {
        throw MediaError(
          .notConvertible,
          "frames of \(camera.device.address) depend on others and cannot be shown alone",
          recovery: Recovery("choose a format of MJPEG or uncompressed images", .change(.format)))
      }
    } catch {
      removeOutput(preview)
      throw error
    }
  }
}

/// Decodes the bytes of camera frames to images for a view.
final class PreviewDecoder: Sendable {
  /// A frame as the camera delivered it.
  struct Source {
    let observation: FrameObservation
    let exposure: ExposureInForce
    let format: FormatDescription
    let geometry: ConnectionGeometry
  }

  private let converter = Mutex(SampleConverter(quality: .fast))

  /// Decodes a frame to an image of the greatest size that fits a view.
  ///
  /// - Returns: The frame, or the error of a damaged frame or an unknown pixel format.
  func frame(
    _ bytes: UnsafeRawBufferPointer, _ source: Source, as format: PixelFormat, _ maximumWidth: Int,
    _ maximumHeight: Int
  ) -> Result<PreviewFrame, MediaError> {
    let observation = source.observation
    let work = SampleConverter.Work(
      settings: Self.settings(format, of: source, maximumWidth, maximumHeight),
      rotation: source.geometry.rotation,
      factor: source.geometry.outputFactor(atMicroseconds: observation.microseconds))
    do {
      let (image, images) = try converter.withLock { converter in
        try converter.convert(bytes, source.format, work)
      }
      return .success(
        PreviewFrame(
          image, of: images, sequence: observation.sequence,
          at: MediaTime(microseconds: observation.microseconds),
          exposureDuration: source.exposure.duration))
    } catch {
      return .failure(
        error as? MediaError
          ?? MediaError(
            .invalidData, "could not show a frame: \(error)",
            recovery: Recovery("choose another format", .change(.format))))
    }
  }

  /// The pixel format and the size of an image for a view: the greatest size that fits the maximum
  /// and the camera's size.
  private static func settings(
    _ format: PixelFormat, of source: Source, _ maximumWidth: Int, _ maximumHeight: Int
  ) -> VideoDataSettings {
    let isTransposed = source.geometry.rotation.isTransposed
    let (width, height) =
      isTransposed
      ? (source.format.height, source.format.width) : (source.format.width, source.format.height)
    let rect = PreviewGeometry(
      imageWidth: width, imageHeight: height, viewWidth: Double(min(width, maximumWidth)),
      viewHeight: Double(min(height, maximumHeight))
    ).imageRect
    return VideoDataSettings(
      pixelFormat: format, width: max(1, Int(rect.width.rounded())),
      height: max(1, Int(rect.height.rounded())))
  }
}

/// A frame that a preview shows.
///
/// When this object is released, the memory of its image is reused for a later frame.
public final class PreviewFrame: Sendable {
  /// The image, rotated, mirrored and cropped by the settings of the connection.
  public let image: PixelBuffer
  /// The driver's frame counter, which wraps at 2^32.
  public let sequence: UInt32
  /// The capture time, on the capture clock (`CLOCK_MONOTONIC`).
  public let presentationTimeStamp: MediaTime
  /// The manual exposure duration of the frame.
  ///
  /// Nil if exposure is automatic or unknown, and for frames of a ``DelayedVideoPreview``.
  public let exposureDuration: MediaTime?
  private let pool: PixelBufferPool

  init(
    _ image: PixelBuffer, of pool: PixelBufferPool, sequence: UInt32, at time: MediaTime,
    exposureDuration: MediaTime?
  ) {
    (self.image, self.pool, self.sequence) = (image, pool, sequence)
    presentationTimeStamp = time
    self.exposureDuration = exposureDuration
  }

  deinit { pool.recycle(image) }
}
