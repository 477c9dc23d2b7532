// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// An output that finds machine-readable codes and faces in the frames of a session.
///
/// A thread of the output searches the newest frame; at most one frame waits, and frames that are not
/// examined are counted in ``ledger``. The capture thread and other outputs lose no frame to it.
///
/// ```swift
/// let output = MetadataOutput()
/// try output.setMetadataObjectTypes([.qr, .ean13])
/// try session.addOutput(output)
/// try session.startRunning()
/// for await frame in output.metadataObjects {
///   for code in frame.objects { print(code.stringValue ?? "", code.bounds) }
/// }
/// ```
///
/// A source that waits for its consumers, such as `file:clip.mov?pace=max`, is examined frame by
/// frame. Frames of H.264 cannot be examined, because each would need those before it. Corresponds to
/// `AVCaptureMetadataOutput`. All calls may come from any thread, and none blocks.
public final class MetadataOutput: FrameOutput {
  private let worker = MetadataWorker()
  private let core = Mutex<SessionCore?>(nil)

  /// The rectangle of a whole frame.
  static let wholeFrame = PreviewRect(x: 0, y: 0, width: 1, height: 1)

  /// Creates an output, to be added to a session.
  ///
  /// It finds nothing until types are set.
  public init() {}

  /// Creates an output and adds it to a session.
  ///
  /// - Parameters:
  ///   - session: The session.
  ///   - types: The types to find. By default all codes.
  ///   - faceModel: A detector of faces to be used instead of that in the library.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable` and the reason; `.missingComponent` if the
  ///   library for a type is not installed; `.notConnected` if the
  ///   session has no camera; `.notConvertible` for a camera whose codec uses inter-frame prediction.
  public convenience init(
    session: CaptureSession, types: [MetadataObjectType] = MetadataObjectType.codes,
    faceModel: FaceModel? = nil
  ) throws(MediaError) {
    self.init()
    try setMetadataObjectTypes(types, faceModel: faceModel)
    try session.addOutput(self)
    let camera = session.connections.first { $0.output === self }?.camera
    guard let camera else {
      session.removeOutput(self)
      throw MediaError(
        .notConnected, "the session has no camera to search", recovery: "add a camera first")
    }
    guard FormatDescription(camera.delivery).isConvertible else {
      session.removeOutput(self)
      throw MediaError(
        .notConvertible,
        "frames of \(camera.device.address) depend on others and cannot be searched alone",
        recovery: Recovery("choose a format of MJPEG or uncompressed images", .change(.format)))
    }
  }

  deinit { worker.stop() }

  /// Video only.
  public var mediaTypes: [MediaType] { [.video] }

  /// The session to which the output was added, or nil.
  ///
  /// The output keeps the inputs of this session alive, and the session itself while it runs. If
  /// the program has dropped a session that does not run, this is a new object for it.
  public var session: CaptureSession? { core.withLock { $0 }?.session }

  /// The types that can be found: all codes, and faces.
  public var availableMetadataObjectTypes: [MetadataObjectType] { ObjectReaders.available }

  /// The types that are searched; none by default.
  public var metadataObjectTypes: [MetadataObjectType] {
    worker.settings.withLock { $0.readers?.types ?? [] }
  }

  /// Sets the types that are searched, from the next frame.
  ///
  /// Fewer types cost less time.
  ///
  /// - Parameters:
  ///   - types: The types, all of them available. None ends the search.
  ///   - faceModel: A detector of faces to be used instead of that in the library.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable` and the reason, `.missingComponent` if the
  ///   library for a type is not installed, or `.outOfMemory`.
  public func setMetadataObjectTypes(
    _ types: [MetadataObjectType], faceModel: FaceModel? = nil
  ) throws(MediaError) {
    let readers = types.isEmpty ? nil : try ObjectReaders(types, faceModel: faceModel)
    worker.settings.withLock {
      $0.readers = readers
      $0.version += 1
    }
  }

  /// The part of the frame that is searched, in device coordinates; the whole frame by default.
  ///
  /// An object is reported if its center is inside. A smaller part costs less time. Parts outside the
  /// frame are ignored.
  public var rectOfInterest: PreviewRect {
    get { worker.settings.withLock { $0.rectOfInterest } }
    set { worker.settings.withLock { $0.rectOfInterest = newValue } }
  }

  /// The number of frames that must agree on a text before it is reported, at least 1.
  ///
  /// Default: 2. With 1, a text may be wrong. Faces are reported at once.
  public var requiredAgreement: Int {
    get { worker.settings.withLock { $0.agreement } }
    set {
      worker.settings.withLock {
        $0.agreement = max(1, newValue)
        $0.version += 1
      }
    }
  }

  /// The greatest share of a processor that the search uses, above 0 and up to 1.
  ///
  /// Default: 0.2. The output rests between frames to stay below it. A source that waits for its
  /// consumers is searched without rest.
  public var maximumProcessorShare: Double {
    get { worker.settings.withLock { $0.share } }
    set { worker.settings.withLock { $0.share = max(0.01, min(1, newValue)) } }
  }

  /// The counts of frames by outcome so far.
  public var ledger: MetadataLedger { worker.counters.ledger }

  /// The objects of examined frames from the time of this call.
  ///
  /// A frame without objects is only reported after one with objects. Each iteration buffers the
  /// newest 256 frames. The sequence ends with the output.
  public var metadataObjects: some AsyncSequence<MetadataObjectFrame, Never> & Sendable {
    worker.hub.events()
  }

  /// Sets a handler that is called with the objects of each frame that ``metadataObjects`` reports.
  ///
  /// - Parameter handler: Called on the thread of the output, one call at a time and in order.
  ///   Frames that arrive during a call may not be examined.
  public func setMetadataObjectsHandler(
    _ handler: @escaping @Sendable (MetadataObjectFrame) -> Void
  ) {
    worker.handler.withLock { $0 = handler }
  }

  /// Whether a frame waits or is examined now.
  package var isBusy: Bool { worker.currentSink?.isBusy ?? false }

  // MARK: - FrameOutput

  package func sink(for connection: CaptureConnection) throws(MediaError) -> (any FrameSink)? {
    guard connection.mediaType == .video, let camera = connection.camera,
      FormatDescription(camera.delivery).isConvertible
    else { return nil }
    // If the device was reopened, it has a new pool, and the sink belongs to the old one.
    if let sink = worker.currentSink, sink.pool === camera.pool, sink.gate === connection.gate {
      return sink
    }
    let sink = MetadataSink(camera, connection, worker.counters, wake: worker.wake)
    try worker.begin(sink)
    return sink
  }

  // Coordinates are those of the captured frame, so it is searched as it is.
  package func canTransform(_ format: FormatDescription) -> Bool { false }

  package func didJoin(_ session: CaptureSession?) {
    core.withLock { $0 = session?.core }
    if session == nil { worker.replaceSink(with: nil) }
  }
}
