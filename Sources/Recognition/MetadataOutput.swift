// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
public import OvercrankRaster
import Synchronization

/// An output that finds machine-readable codes and faces in the frames of a session.
///
/// The output's own thread searches the newest frame. At most one frame waits, and ``ledger``
/// counts the frames that are not searched. The search costs the capture thread and the other
/// outputs no frame.
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
/// Every frame is searched if the source waits for its consumers, as `file:clip.mov?pace=max` does.
/// The frames of an H.264 camera are decoded on a thread of their own first.
///
/// Corresponds to `AVCaptureMetadataOutput`. All calls may come from any thread, and none blocks.
public final class MetadataOutput: FrameOutput {
  private let worker = MetadataWorker()
  private let core = Mutex<SessionCore?>(nil)

  /// The rectangle of a whole frame, in device coordinates.
  static let wholeFrame = Rect(x: 0, y: 0, width: 1, height: 1)

  /// The default of ``maximumProcessorShare``.
  static let usualProcessorShare = 0.2
  /// The default of ``maximumPassRate``.
  static let usualPassRate = FrameRate(12)

  /// Creates an output, to be added to a session.
  ///
  /// The output finds nothing until types are set.
  public init() {}

  /// Creates an output and adds it to a session.
  ///
  /// - Parameters:
  ///   - session: The session.
  ///   - types: The types to find; all codes by default.
  ///   - faceModel: A face detector to use instead of the one in the library.
  /// - Throws: `MediaError` with `.metadataTypeUnavailable` and the reason; `.missingComponent` if the
  ///   library for a type is not installed; `.notConnected` if the
  ///   session has no camera; `.notConvertible` for a camera whose frames cannot be decoded.
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
    guard FormatDescription(camera.imageDelivery).isConvertible else {
      session.removeOutput(self)
      throw MediaError(
        .notConvertible,
        "frames of \(camera.device.address) depend on others and cannot be searched alone",
        recovery: Recovery("choose a format of MJPEG or uncompressed images", .change(.format)))
    }
  }

  deinit { worker.stop() }

  /// The output takes only video.
  public var mediaTypes: [MediaType] { [.video] }

  /// The session to which the output was added; nil before that.
  ///
  /// The output retains the inputs of the session, and the session itself while it runs. If the
  /// program has released a session that does not run, this property makes a new object for it.
  public var session: CaptureSession? { core.withLock { $0 }?.session }

  /// The types that can be found: all codes, and faces.
  public var availableMetadataObjectTypes: [MetadataObjectType] { ObjectReaders.available }

  /// The types that are searched for; none by default.
  public var metadataObjectTypes: [MetadataObjectType] {
    worker.settings.withLock { $0.readers?.types ?? [] }
  }

  /// Sets the types that are searched for, beginning with the next frame.
  ///
  /// Fewer types cost less time.
  ///
  /// - Parameters:
  ///   - types: The types, which must all be available. An empty list ends the search.
  ///   - faceModel: A face detector to use instead of the one in the library.
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
  /// An object is reported if its center is inside. A smaller part costs less time. Any part of the
  /// rectangle outside the frame is ignored.
  public var rectOfInterest: Rect {
    get { worker.settings.withLock { $0.rectOfInterest } }
    set { worker.settings.withLock { $0.rectOfInterest = newValue } }
  }

  /// The number of frames that must agree on the text of a code before the code is reported, at
  /// least 1.
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

  /// The greatest number of frames that are searched as a whole, per second.
  ///
  /// Default: 12. The other examined frames are searched only around known objects. Setting it
  /// discards the known objects.
  public var maximumPassRate: FrameRate {
    get { worker.settings.withLock { $0.passRate } }
    set {
      worker.settings.withLock {
        $0.passRate = newValue
        $0.version += 1
      }
    }
  }

  /// The greatest fraction of a processor that the search may use, above 0 and up to 1.
  ///
  /// Default: 0.2. The thread sleeps between frames to stay below this limit, and ``ledger`` counts
  /// the frames that are skipped meanwhile. Unless this property is set, frames of a source that waits
  /// for its consumers are searched without sleeping.
  public var maximumProcessorShare: Double {
    get { worker.settings.withLock { $0.share } ?? Self.usualProcessorShare }
    set { worker.settings.withLock { $0.share = max(0.01, min(1, newValue)) } }
  }

  /// The numbers of frames so far, by outcome.
  public var ledger: MetadataLedger {
    MetadataLedger(worker.counters.ledger, searched: worker.searchedCount)
  }

  /// The objects that were found in frames, beginning with the next frame.
  ///
  /// A frame without objects is reported only after a frame with objects. Each iteration buffers
  /// the newest 256 frames. The sequence ends when the output is released.
  public var metadataObjects: some AsyncSequence<MetadataObjectFrame, Never> & Sendable {
    worker.hub.events()
  }

  /// Sets a handler that is called with the objects of each frame that ``metadataObjects`` reports.
  ///
  /// - Parameter handler: Called on the thread of the output, one call at a time and in order.
  ///   Frames that arrive during a call may not be searched.
  public func setMetadataObjectsHandler(
    _ handler: @escaping @Sendable (MetadataObjectFrame) -> Void
  ) {
    worker.handler.withLock { $0 = handler }
  }

  /// Whether a frame waits for the search or is being searched.
  package var isBusy: Bool { worker.currentSink?.isBusy ?? false }

  // MARK: - FrameOutput

  package func sink(
    for connection: CaptureConnection, from camera: DeviceInput
  ) throws(MediaError) -> (any FrameSink)? {
    guard FormatDescription(camera.delivery).isConvertible else { return nil }
    // A sink of the old buffer pool cannot be used again: a reopened device has a new pool.
    if let sink = worker.currentSink, sink.pool === camera.pool, sink.gate === connection.gate {
      return sink
    }
    let sink = MetadataSink(camera, connection, worker.counters, wake: worker.wake)
    try worker.begin(sink)
    return sink
  }

  package var decodesFrames: Bool { true }

  // Objects have coordinates of the captured frame, so the frame is not transformed before the
  // search.
  package func canTransform(_ format: FormatDescription) -> Bool { false }

  package func didJoin(_ session: CaptureSession?) {
    core.withLock { $0 = session?.core }
    if session == nil { worker.replaceSink(with: nil) }
  }
}

/// The numbers of frames that a metadata output received, by outcome.
public struct MetadataLedger: Hashable, Sendable {
  /// Frames that arrived while the connection was enabled.
  public var offered: Int64 = 0
  /// Frames that were searched for objects, some of them only around known objects.
  public var examined: Int64 = 0
  /// Frames that were searched as a whole; they are part of ``examined``.
  public var searched: Int64 = 0
  /// Frames that were not searched, because a newer frame replaced them or no buffer was free.
  public var skipped: Int64 = 0
  /// Frames that arrived damaged, or could not be decoded.
  public var corrupt: Int64 = 0
  /// Frames that wait for the search or are being searched.
  public var waiting: Int64 = 0

  /// Whether the numbers of frames of all outcomes add up to ``offered``.
  public var isBalanced: Bool { offered == examined + skipped + corrupt + waiting }
}

extension MetadataLedger {
  /// Creates the ledger of an output from its counts.
  init(_ ledger: DataOutputLedger, searched: Int64 = 0) {
    self.searched = searched
    (offered, examined, waiting) = (ledger.offered, ledger.delivered, ledger.waiting)
    corrupt = ledger.dropped[.corrupt] ?? 0
    skipped = ledger.dropped.values.reduce(0, +) - corrupt
  }
}
