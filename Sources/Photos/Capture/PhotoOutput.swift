// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import OvercrankCameraControls
public import OvercrankCapture
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

/// An output that takes photos while a session runs, at the same time as movies and data outputs.
///
/// The output always holds the latest frames, so a photo is the last frame before its request (zero
/// shutter lag). Frames are encoded and written on a separate thread. The capture thread only
/// copies the chosen frames.
///
/// ```swift
/// let output = PhotoOutput()
/// try session.addOutput(output)
/// try session.startRunning()
/// var settings = PhotoSettings()
/// settings.destination = .file("goal.jpg")
/// let photos = try await output.photos(with: settings)
/// ```
///
/// All calls may come from any thread. Only the `photos` methods wait for the photos.
public final class PhotoOutput: FrameOutput {
  private struct State {
    var core: SessionCore?
    var sink: (connection: ObjectIdentifier, sink: PhotoSink)?
  }

  private let state = Mutex(State())
  let options = PhotoSink.Options()
  let processor: PhotoProcessor

  /// Creates an output, to be added to a session.
  ///
  /// - Parameter encoders: The encoders of formats that need an additional library, such as
  ///   ``PhotoFormat/heic``.
  public init(encoders: [any PhotoEncoder] = []) { processor = PhotoProcessor(encoders: encoders) }

  deinit {
    processor.livePhotos?.end()
    processor.stop()
  }

  /// The session to which the output was added, or nil.
  ///
  /// The output keeps the inputs of this session alive, and the session itself while it runs. If
  /// the session is not running and the program holds no reference to its object, this is a new
  /// object for the same session.
  public var session: CaptureSession? { state.withLock { $0.core }?.session }

  /// The media types that the output accepts: video only.
  public var mediaTypes: [MediaType] { [.video] }

  /// Whether the output holds the latest frames, so that a photo can show a time before its
  /// request.
  ///
  /// The default is true. The output then holds up to three of the camera's buffers. If false, a
  /// photo is the first frame after its request. A change takes effect at the next start of the
  /// stream, or when the outputs of the session change.
  public var isZeroShutterLagEnabled: Bool {
    get { options.keepsRecentFrames.load(ordering: .relaxed) }
    set { options.keepsRecentFrames.store(newValue, ordering: .relaxed) }
  }

  /// The formats in which the connected camera's frames can be stored.
  ///
  /// Empty without a camera.
  public var availablePhotoFormats: [PhotoFormat] {
    camera.map { formats(for: FormatDescription($0.delivery).mediaSubType) } ?? []
  }

  /// The formats in which these frames can be stored with the output's encoders.
  private func formats(for subType: MediaSubType) -> [PhotoFormat] {
    PhotoFormat.available(for: subType).filter { format in
      format != .heic || processor.hasEncoder(of: format)
    }
  }

  /// Whether the output accepts a capture now.
  public var captureReadiness: PhotoReadiness { processor.readiness }

  /// The changes of ``captureReadiness`` from the time of this call.
  ///
  /// A slow consumer gets only the newest value.
  public var captureReadinessChanges: some AsyncSequence<PhotoReadiness, Never> & Sendable {
    processor.readinessChanges()
  }

  /// The events of all captures from the time of this call.
  ///
  /// Each iteration buffers the newest 256 events. ``PhotoCapture/events`` loses no event.
  public var events: some AsyncSequence<PhotoEvent, Never> & Sendable { processor.events() }

  /// Requests photos and returns at once.
  ///
  /// - Parameters:
  ///   - settings: The options. Each settings value is accepted only once.
  ///   - time: The time for which the first photo is requested, on the capture clock. It may be in
  ///     the future. If it is more than three frames ago, a later frame is chosen. Nil selects the
  ///     time of this call.
  /// - Returns: The capture, with its events.
  /// - Throws: `MediaError` with `.badConfiguration` for invalid or already used settings, or for a
  ///   camera format that cannot be stored; `.notConnected` if no camera is running; `.notReady` if
  ///   too many captures are pending.
  public func capturePhoto(
    with settings: PhotoSettings, at time: MediaTime? = nil
  ) throws(MediaError) -> PhotoCapture {
    let (stream, continuation) = AsyncStream<PhotoEvent>.makeStream()
    let resolved = try request(settings, at: time) { event in
      continuation.yield(event)
      if case .didFinishCapture = event { continuation.finish() }
    }
    return PhotoCapture(resolvedSettings: resolved, stream: stream, processor: processor)
  }

  /// Takes photos and blocks until they are finished.
  ///
  /// - Parameters:
  ///   - settings: The options. Each settings value is accepted only once.
  ///   - time: The time for which the first photo is requested, as for ``capturePhoto(with:at:)``.
  ///   - progress: Called on this thread with each finished photo. For a Live Photo, it is called
  ///     after the movie is finished.
  /// - Returns: The photos in capture order.
  /// - Throws: `MediaError` as ``capturePhoto(with:at:)`` does, or the first error of the capture.
  ///   Photos that were finished before the error are kept.
  public func photos(
    with settings: PhotoSettings, at time: MediaTime? = nil, progress: (Photo) -> Void = { _ in }
  ) throws(MediaError) -> [Photo] {
    let inbox = Inbox()
    _ = try request(settings, at: time) { inbox.put($0) }
    var photos: [Photo] = []
    while true {
      switch inbox.take() {
      case .didFinishProcessingPhoto(_, .success(let photo)):
        photos.append(photo)
        if settings.livePhoto == nil { progress(photo) }
      case .didFinishLivePhotoMovie(_, let result):
        photos.add(try? result.get())
      case .didFinishCapture(_, let error):
        if settings.livePhoto != nil, let photo = photos.last { progress(photo) }
        if let error { throw error }
        return photos
      default: break
      }
    }
  }

  /// Takes photos and suspends the task until they are finished.
  ///
  /// Cancelling the task ends the capture. Photos that were already taken are finished first.
  ///
  /// - Returns: The photos in capture order.
  /// - Throws: `MediaError` as the blocking form does.
  public func photos(
    with settings: PhotoSettings, at time: MediaTime? = nil
  ) async throws(MediaError) -> [Photo] {
    let capture = try capturePhoto(with: settings, at: time)
    let result: Result<[Photo], MediaError> = await withTaskCancellationHandler {
      // After a cancellation, the iteration must continue until the capture has ended. It therefore
      // runs in a separate task, which is not cancelled.
      let rest = Task { () -> Result<[Photo], MediaError> in
        var photos: [Photo] = []
        for await event in capture.events {
          switch event {
          case .didFinishProcessingPhoto(_, .success(let photo)): photos.append(photo)
          case .didFinishLivePhotoMovie(_, let result): photos.add(try? result.get())
          case .didFinishCapture(_, let error):
            return error.map { .failure($0) } ?? .success(photos)
          default: break
          }
        }
        return .success(photos)
      }
      return await rest.value
    } onCancel: {
      capture.stop()
    }
    return try result.get()
  }

  /// Ends all pending captures early.
  ///
  /// Photos that were already taken are finished.
  public func stopAll() { for id in processor.pendingIDs { processor.stop(id) } }

  private func request(
    _ settings: PhotoSettings, at time: MediaTime?,
    listener: @escaping @Sendable (PhotoEvent) -> Void
  ) throws(MediaError) -> ResolvedPhotoSettings {
    let id = settings.uniqueID
    try settings.check()
    guard let connection, let camera = connection.camera, connection.isEnabled else {
      throw .noCamera(id)
    }
    let source = FormatDescription(camera.delivery).mediaSubType
    guard formats(for: source).contains(settings.format) else {
      throw MediaError(
        .badConfiguration,
        "photo \(id): frames of the mode \(camera.modeName) cannot be stored as photos",
        recovery: Recovery("choose another format", .change(.format)))
    }
    let microseconds = try time.map { time throws(MediaError) in
      try time.converted(to: 1_000_000, rounding: .towardNegativeInfinity).value
    }
    if settings.livePhoto != nil {
      guard isLivePhotoCaptureEnabled else {
        throw MediaError(
          .badConfiguration, "photo \(id): Live Photos are not enabled",
          recovery: "call setLivePhotoCaptureEnabled(true) before the session starts")
      }
      alignMovies(with: connection)
    }
    let preparation = try preparation(for: settings, of: camera)
    guard settings.use() else {
      throw MediaError(
        .badConfiguration, "the settings of photo \(id) were used before",
        recovery: "make new settings for each capture")
    }
    return try processor.request(settings, at: microseconds, preparation, listener: listener)
  }

  var connection: CaptureConnection? {
    session?.connections.first { $0.output === self }
  }
  private var camera: DeviceInput? { connection?.camera }

  // MARK: - FrameOutput

  package func sink(
    for connection: CaptureConnection, from camera: DeviceInput
  ) throws(MediaError) -> (any FrameSink)? {
    let format = FormatDescription(camera.delivery).mediaSubType
    guard !PhotoFormat.available(for: format).isEmpty else { return nil }
    options.isAlone.store(session?.outputs.count == 1, ordering: .relaxed)
    processor.livePhotos?.begin()
    return try state.withLock { (state) throws(MediaError) -> PhotoSink in
      let identifier = ObjectIdentifier(connection.gate)
      // If the device was reopened or its stream has ended, the sink is no longer used.
      if let (known, sink) = state.sink, known == identifier, !sink.isOver,
        sink.channel.source.pool === camera.pool
      {
        return sink
      }
      let channel = try processor.begin(camera, connection.geometry)
      let sink = PhotoSink(channel, gate: connection.gate, options: options)
      state.sink = (identifier, sink)
      return sink
    }
  }

  package var decodesFrames: Bool { true }

  package func canTransform(_ format: FormatDescription) -> Bool {
    !PhotoFormat.available(for: format.mediaSubType).isEmpty
  }

  package func didJoin(_ session: CaptureSession?) {
    state.withLock { state in
      state.core = session?.core
      if session == nil { state.sink = nil }
    }
  }
}

extension [Photo] {
  /// Sets the movie of the last photo.
  fileprivate mutating func add(_ movie: LivePhotoMovie?) {
    if !isEmpty { self[count - 1].livePhotoMovie = movie }
  }
}

/// Collects the events of a capture for a thread that waits for them.
private final class Inbox: Sendable {
  private let events = Mutex<[PhotoEvent]>([])
  private let arrived = DispatchSemaphore(value: 0)

  func put(_ event: PhotoEvent) {
    events.withLock { $0.append(event) }
    arrived.signal()
  }

  func take() -> PhotoEvent {
    arrived.wait()
    return events.withLock { $0.removeFirst() }
  }
}

extension PhotoOutput {
  /// The flash modes that the connected camera supports.
  ///
  /// Contains only `.off` if no camera is connected, or the camera has no light. Blocks while the
  /// camera's controls are read.
  public var supportedFlashModes: [FlashMode] {
    guard let device = connection?.camera?.device, device.kind == .v4l2,
      let controls = try? PhotoControls(device), controls.hasLight
    else { return [.off] }
    return FlashMode.allCases
  }

  /// Returns the camera settings that the photos require.
  ///
  /// Returns nil if no setting must be changed.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks a control.
  func preparation(
    for settings: PhotoSettings, of camera: DeviceInput
  ) throws(MediaError) -> PhotoPreparation? {
    var preparation = PhotoPreparation()
    preparation.controls = try controls(for: settings, of: camera)
    if settings.isHighResolutionPhotoEnabled, let session {
      preparation.stillMode = try StillMode(of: camera, in: session, for: settings.format)
    }
    return preparation.isEmpty ? nil : preparation
  }

  /// Returns the exposure and light controls of a camera.
  ///
  /// Returns nil if the capture does not change them.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks a control.
  private func controls(
    for settings: PhotoSettings, of camera: DeviceInput
  ) throws(MediaError) -> PhotoControls? {
    guard settings.flashMode != .off || !settings.bracket.isEmpty else { return nil }
    guard camera.device.kind == .v4l2 else {
      // On a camera without a light, the automatic flash mode has no effect.
      guard settings.flashMode == .on || !settings.bracket.isEmpty else { return nil }
      throw PhotoControls.missing(settings.bracket.isEmpty ? "light" : "exposure controls")
    }
    let controls = try PhotoControls(camera.device)
    try controls.check(settings.bracket)
    if settings.flashMode == .on, !controls.hasLight { throw PhotoControls.missing("light") }
    return controls
  }

  /// Whether the connected camera's frames can be stored as Live Photos.
  public var isLivePhotoCaptureSupported: Bool { !availablePhotoFormats.isEmpty }

  /// Whether Live Photos can be requested.
  public var isLivePhotoCaptureEnabled: Bool { processor.livePhotos != nil }

  /// Enables or disables Live Photos.
  ///
  /// While Live Photos are enabled, the session has an additional movie output, which keeps the
  /// last 1.5 s of frames and audio in memory. In the first 1.5 s of the session, the movie of a
  /// Live Photo starts less than 1.5 s before the photo. Disable Live Photos before you remove this
  /// output from its session. Movies in progress then end early.
  ///
  /// - Throws: `MediaError` with `.notConnected` if the output belongs to no session with a camera,
  ///   or `.badConfiguration` if the session rejects the movie output.
  public func setLivePhotoCaptureEnabled(_ isEnabled: Bool) throws(MediaError) {
    guard isEnabled != isLivePhotoCaptureEnabled else { return }
    guard isEnabled else {
      let recorder = processor.livePhotos
      processor.livePhotos = nil
      recorder?.end()
      if let recorder { session?.removeOutput(recorder.output) }
      return
    }
    guard let session, isLivePhotoCaptureSupported else {
      throw MediaError(
        .notConnected, "Live Photos need a camera whose frames can be stored as photos",
        recovery: "add the output to a session with a camera first")
    }
    let recorder = LivePhotoRecorder { [weak processor, options] ring in
      let start: Int64? =
        switch ring {
        case .empty: nil
        case .filling: processor?.now
        // A photo does not wait for a movie that cannot be recorded.
        case .failed: .min
        }
      options.ringStart.store(start ?? .max, ordering: .relaxed)
    } didRecord: { [weak processor] id in
      processor?.didRecordMovie(id)
    } didEnd: { [weak processor] request, result in
      processor?.endMovie(request, result)
    }
    try session.addOutput(recorder.output)
    processor.livePhotos = recorder
    if session.isRunning { recorder.begin() }
  }

  /// The number of Live Photos whose movies are being recorded.
  public var livePhotosInProgressCount: Int { processor.livePhotos?.count ?? 0 }

  /// Sets the rotation, mirroring and zoom of the movies to those of the photos.
  func alignMovies(with connection: CaptureConnection) {
    guard let recorder = processor.livePhotos,
      let movie = session?.connections.first(where: {
        $0.output === recorder.output && $0.mediaType == .video
      })
    else { return }
    // Both connections support the same settings, so this does not fail.
    try? movie.setVideoRotationAngle(connection.videoRotationAngle)
    movie.automaticallyAdjustsVideoMirroring = false
    try? movie.setVideoMirrored(connection.isVideoMirrored)
    try? movie.setVideoScaleAndCropFactor(connection.videoScaleAndCropFactor)
  }
}

/// Whether a photo output can accept a capture now.
public enum PhotoReadiness: String, Hashable, Sendable {
  /// No camera with a suitable format is running.
  case sessionNotRunning
  /// The output accepts a capture.
  case ready
  /// The greatest possible number of captures is already pending.
  case notReadyMomentarily
  /// The memory for frames that wait to be encoded is nearly full.
  ///
  /// The output accepts a capture, but a burst may fail.
  case notReadyWaitingForProcessing
}
