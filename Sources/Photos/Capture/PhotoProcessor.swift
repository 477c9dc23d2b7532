// SPDX-License-Identifier: Apache-2.0

import Dispatch
import FoundationEssentials
import Glibc
import OvercrankCapture
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankRecording
import Synchronization

/// Encodes and writes the chosen frames on a separate thread, and reports the life cycles of
/// captures.
final class PhotoProcessor: Sendable {
  /// A part of a capture that may end after its photos.
  enum LateEnd {
    /// The movie of a Live Photo.
    case movie
    /// The restoring of the camera's exposure, light and mode.
    case restoring
  }

  /// The state of a capture that has not ended.
  private struct Record {
    let settings: PhotoSettings
    let resolved: ResolvedPhotoSettings
    /// The rotation of the connection to the camera when the capture was requested.
    let rotation: FrameRotation
    let listener: @Sendable (PhotoEvent) -> Void
    var hasBegun = false
    var isStopRequested = false
    /// The part of the capture that sets exposure, light or mode; nil if nothing is set.
    var controlled: ControlledCapture?
    /// The value of Exif's field `Flash`, or nil if the camera has no light.
    var flash: Int?
    /// The parts of the capture that have not ended, besides the photos.
    var openEnds: Set<LateEnd> = []
    /// The result of storing the photo to which a movie belongs.
    ///
    /// Nil until the photo is encoded.
    var storage: PhotoStorage?
    /// The movie, if it ended before its photo was stored.
    var endedMovie: EndedMovie?
    /// The result of the photos, if they have ended but another part of the capture has not.
    var photosEnded: Result<Void, MediaError>?
    var error: MediaError?
  }

  private struct State {
    var channels: [PhotoChannel] = []
    var records: [Int64: Record] = [:]
    var hasThread = false
    var isStopped = false
    /// Records the movies of Live Photos; nil while Live Photos are disabled.
    var livePhotos: LivePhotoRecorder?

    /// Whether any pending capture changes the camera's mode.
    var changesMode: Bool { records.values.contains { $0.controlled?.changesMode == true } }
  }

  /// Signaled for each message from a capture thread, at the end of a stream, and by ``stop()``.
  private let wake = DispatchSemaphore(value: 0)
  private let hub = EventHub<PhotoEvent>()
  private let readinessHub = EventHub<PhotoReadiness>(capacity: 1)
  private let state = Mutex(State())
  private let sentReadiness = Mutex(PhotoReadiness.sessionNotRunning)
  /// The encoders of formats that need an additional library.
  private let encoders: [any PhotoEncoder]

  init(encoders: [any PhotoEncoder]) { self.encoders = encoders }

  // MARK: - On any thread

  /// The events of all captures that occur after this call.
  func events() -> AsyncStream<PhotoEvent> { hub.events() }

  /// The changes of the readiness after this call.
  func readinessChanges() -> AsyncStream<PhotoReadiness> { readinessHub.events() }

  /// Whether an encoder with an additional library writes a format.
  func hasEncoder(of format: PhotoFormat) -> Bool { encoders.contains { $0.format == format } }

  /// Creates a channel for a stream, whose frames are processed after those of earlier streams.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if memory or a thread is unavailable.
  func begin(
    _ camera: DeviceInput, _ geometry: ConnectionGeometry
  ) throws(MediaError) -> PhotoChannel {
    let channel = try PhotoChannel(camera, geometry, wake: wake)
    try state.withLock { (state) throws(MediaError) in
      if !state.hasThread { try BlockingThread.started { [self] in run() }.detach() }
      state.hasThread = true
      state.channels.append(channel)
    }
    updateReadiness()
    return channel
  }

  /// Ends the encoding thread after it has processed the selected frames.
  func stop() {
    state.withLock { $0.isStopped = true }
    wake.signal()
  }

  /// The channel of the camera's running stream, or nil.
  private var openChannel: PhotoChannel? {
    state.withLock { $0.channels.last.flatMap { $0.isClosed ? nil : $0 } }
  }

  /// The channel of the running stream.
  ///
  /// - Throws: `MediaError` with `.notConnected` without a stream.
  func currentChannel(for id: Int64) throws(MediaError) -> PhotoChannel {
    guard let channel = openChannel else { throw .noCamera(id) }
    return channel
  }

  /// The current time of the running camera's clock in microseconds, or nil without a stream.
  var now: Int64? { openChannel?.source.now }

  var readiness: PhotoReadiness {
    guard let channel = openChannel else { return .sessionNotRunning }
    if state.withLock({ $0.records.count }) >= PhotoChannel.maximumPending {
      return .notReadyMomentarily
    }
    return channel.queue.isNearlyFull ? .notReadyWaitingForProcessing : .ready
  }

  private func updateReadiness() {
    // Only one thread at a time may compute and send the readiness, so that the value sent last is
    // the current one.
    sentReadiness.withLock { sent in
      let new = readiness
      guard sent != new else { return }
      sent = new
      readinessHub.send(new)
    }
  }

  /// Requests a capture of photos.
  ///
  /// - Parameters:
  ///   - settings: The options, which have already been checked.
  ///   - time: The time of the first photo in microseconds of the driver's clock, or nil for now.
  ///   - preparation: The settings of the camera for the photos, or nil.
  ///   - listener: Called with each event of the capture, either by this call while it holds a
  ///     lock, or on the encoding thread.
  /// - Returns: The settings, with the values that the camera determines.
  /// - Throws: `MediaError` with `.notConnected` or `.notReady`.
  func request(
    _ settings: PhotoSettings, at time: Int64?, _ preparation: PhotoPreparation?,
    listener: @escaping @Sendable (PhotoEvent) -> Void
  ) throws(MediaError) -> ResolvedPhotoSettings {
    let id = settings.uniqueID
    // While the camera changes its mode, there is no running stream.
    guard let channel = openChannel else {
      throw state.withLock { $0.changesMode } ? .notReady(id) : .noCamera(id)
    }
    let format = preparation?.stillMode?.description ?? channel.source.format
    let requestTime = time ?? channel.source.now
    let geometry = channel.source.geometry
    let rotation = geometry.rotation
    let size = settings.format.size(ofFrame: format, rotation)
    let resolved = ResolvedPhotoSettings(
      uniqueID: id, format: settings.format, width: size.width, height: size.height,
      expectedPhotoCount: settings.expectedPhotoCount,
      keepsCompressedData: settings.format == .jpeg && settings.quality == nil
        && format.mediaSubType == .codec(.mjpeg)
        && geometry.outputFactor(atMicroseconds: requestTime) == 1,
      livePhotoMovieWidth: settings.livePhoto.map { _ in format.width },
      livePhotoMovieHeight: settings.livePhoto.map { _ in format.height })
    var request = PhotoRequest(
      action: .take, id: id, time: requestTime, count: settings.photoCount,
      interval: settings.intervalNanoseconds)
    if settings.livePhoto?.waitsForPreRoll == true {
      request.preRoll = LivePhotoRecorder.halfDuration.wholeMicroseconds
    }
    let hasRoom = state.withLock { state in
      // A change of the camera's mode would end the stream for which other captures wait.
      guard !state.changesMode, preparation?.stillMode == nil || state.records.isEmpty else {
        return false
      }
      guard state.records.count < PhotoChannel.maximumPending else { return false }
      let movies = state.records.values.count { $0.settings.livePhoto != nil }
      guard settings.livePhoto == nil || movies < LivePhotoRecorder.maximumCount else {
        return false
      }
      var record = Record(
        settings: settings, resolved: resolved, rotation: rotation, listener: listener)
      record.controlled = preparation.map { ControlledCapture(settings, $0, channel, self) }
      if record.controlled != nil { record.openEnds.insert(.restoring) }
      state.records[id] = record
      return true
    }
    guard hasRoom else { throw .notReady(id) }
    do throws(MediaError) {
      if let controlled = state.withLock({ $0.records[id]?.controlled }) {
        send(.willBeginCapture(resolved))
        try controlled.start()
      } else if !channel.post(request, before: { send(.willBeginCapture(resolved)) }) {
        throw .noCamera(id)
      }
    } catch {
      state.withLock { _ = $0.records.removeValue(forKey: id) }
      throw error
    }
    updateReadiness()
    return resolved
  }

  /// Ends a capture early, before its last photo.
  func stop(_ id: Int64) {
    let isNew = state.withLock { state in
      guard let record = state.records[id], !record.isStopRequested else { return false }
      state.records[id]?.isStopRequested = true
      return true
    }
    guard isNew else { return }
    _ = openChannel?.post(PhotoRequest(action: .stop, id: id))
  }

  /// The numbers of the captures that are pending.
  var pendingIDs: [Int64] { state.withLock { $0.records.keys.sorted() } }

  private func send(_ event: PhotoEvent) {
    state.withLock { $0.records[event.id]?.listener }?(event)
    hub.send(event)
  }

  // MARK: - On the encoding thread

  private func run() {
    let writer = PhotoWriter(encoders: encoders)
    while true {
      wake.wait()
      while let channel = nextChannel() {
        guard let selection = channel.selections.pop() else { continue }
        switch selection {
        case .frame(let selected): process(selected, of: channel, writer)
        case .end(let id, let count, let end): self.end(id, takenCount: count, end)
        }
        updateReadiness()
      }
      updateReadiness()
      if state.withLock({ $0.isStopped }) { return cancelAll() }
    }
  }

  /// The oldest stream whose capture thread has sent frames or other messages to process, or nil.
  private func nextChannel() -> PhotoChannel? {
    state.withLock { state in
      // A closed stream selects no further frames, so `isClosed` is read before the count.
      state.channels.removeAll { $0.isClosed && $0.selections.count == 0 }
      return state.channels.first { $0.selections.count > 0 }
    }
  }

  /// Sets the error of a capture, unless it already has an error.
  func note(_ error: MediaError, of id: Int64) {
    state.withLock { state in
      if state.records[id]?.error == nil { state.records[id]?.error = error }
    }
  }

  private func cancelAll() {
    for id in pendingIDs {
      // The movie of a cancelled photo may still be recorded, so the capture does not wait for the
      // movie.
      state.withLock { _ = $0.records[id]?.openEnds.remove(.movie) }
      endPhotos(id, MediaError(.cancelled, "photo \(id): the output was removed"))
    }
  }

  private func process(_ selected: SelectedFrame, of channel: PhotoChannel, _ writer: PhotoWriter) {
    let id = selected.id
    let record = state.withLock { state in
      defer { if !selected.isMeasurement { state.records[id]?.hasBegun = true } }
      return state.records[id]
    }
    guard let record else {
      _ = channel.queue.withNextFrame { _ in }
      return
    }
    if selected.isMeasurement {
      let level = channel.queue.withNextFrame { frame in
        writer.meanLevel(of: frame.bytes, channel.source.format)
      }
      record.controlled?.noteProgress(meanLevel: level ?? 1)
      return
    }
    if !record.hasBegun { send(.willCapturePhoto(id: id)) }
    if selected.isLast { send(.didCapturePhoto(id: id)) }
    let identifier = record.settings.livePhoto.map { _ in UUID().uuidString }
    let context = PhotoContext(rotation: record.rotation, flash: record.flash)
    let result: Result<Photo, MediaError>? = channel.queue.withNextFrame { frame in
      Result { () throws(MediaError) in
        let draft = try writer.draft(of: selected, from: channel.source, record.settings, context)
        // The movie must begin before the image is encoded, because the ring holds the frames
        // before the photo only for a limited time.
        if let identifier {
          beginMovie(of: draft.photo, selected.frame.time, identifier, record.settings)
        }
        return try writer.photo(
          draft, frame.bytes, from: channel.source, record.settings, contentIdentifier: identifier)
      }
    }
    guard let result else { return }
    if case .failure(let error) = result { note(error, of: id) }
    send(.didFinishProcessingPhoto(id: id, result))
    if identifier != nil { endPhotoOfMovie(id, try? result.get()) }
    if selected.isLast { endPhotos(id, nil) }
    if selected.endsRequest { record.controlled?.noteProgress() }
  }
}

extension MediaError {
  static func notReady(_ id: Int64) -> MediaError {
    MediaError(
      .notReady,
      "photo \(id): too many captures are pending, or one needs another mode",
      recovery: "wait until one of them is finished")
  }

  static func noCamera(_ id: Int64) -> MediaError {
    MediaError(
      .notConnected, "photo \(id): the output is not connected to a running camera",
      recovery: "add it to a session with a camera, and start the session")
  }
}

extension PhotoProcessor {
  /// Ends a capture early, unless all its photos have already ended.
  func end(_ id: Int64, takenCount: Int, _ end: PhotoEnd) {
    guard let record = state.withLock({ $0.records[id] }), record.photosEnded == nil else { return }
    let settings = record.settings
    let isEndless = settings.photoCount == .max && takenCount > 0
    let total = settings.photoCount == .max ? "" : "of \(settings.expectedPhotoCount) "
    let taken = "photo \(id): \(takenCount) \(total)taken"
    let error: MediaError?
    switch end {
    case .stopped:
      error = takenCount > 0 ? nil : MediaError(.cancelled, "photo \(id) was cancelled")
    case .failed(let problem): error = problem
    case .memoryFull:
      error = MediaError(
        .outOfMemory, "\(taken), because the memory for frames is full",
        recovery: Recovery("take fewer photos, or choose a smaller format", .change(.format)))
    case .streamEnded(let reason, let cause):
      error =
        cause.map {
          MediaError($0.code, "\(taken): \($0.message)", recovery: $0.recovery, cause: $0.cause)
        }
        ?? (isEndless
          ? nil
          : MediaError(
            .notConnected, "\(taken), because the camera stopped (\(reason.rawValue))",
            recovery: "start the session again"))
    }
    if error == nil { send(.didCapturePhoto(id: id)) }
    endPhotos(id, error)
  }

  /// Ends the photos of a capture, and the capture itself if nothing else remains.
  private func endPhotos(_ id: Int64, _ error: MediaError?) {
    let open = state.withLock { state -> Record? in
      guard let record = state.records[id], !record.openEnds.isEmpty else { return nil }
      guard record.photosEnded == nil else { return record }
      state.records[id]?.photosEnded = error.map { .failure($0) } ?? .success(())
      // Only the first error of a capture is reported.
      if record.error == nil { state.records[id]?.error = error }
      return record
    }
    guard let open else { return finish(id, error) }
    // Wakes the thread of the capture, which then restores the camera's settings.
    open.controlled?.noteProgress()
  }

  /// Records the end of a part of a capture that may end after the photos, such as a movie.
  func endWait(for id: Int64, _ end: LateEnd) {
    let ended = state.withLock { state -> Result<Void, MediaError>? in
      state.records[id]?.openEnds.remove(end)
      guard let record = state.records[id], record.openEnds.isEmpty else { return nil }
      return record.photosEnded
    }
    switch ended {
    case .success: finish(id, nil)
    case .failure(let error): finish(id, error)
    case nil: break
    }
  }

  /// Ends a capture, and sends its last event.
  private func finish(_ id: Int64, _ error: MediaError?) {
    let record = state.withLock { $0.records.removeValue(forKey: id) }
    guard let record else { return }
    record.controlled?.noteProgress()
    let event = PhotoEvent.didFinishCapture(id: id, error: record.error ?? error)
    // The record of the capture is already removed, so that a program that waits for this event can
    // request the next capture at once.
    record.listener(event)
    hub.send(event)
    updateReadiness()
  }

  /// The recorder of Live Photo movies; nil while Live Photos are disabled.
  var livePhotos: LivePhotoRecorder? {
    get { state.withLock { $0.livePhotos } }
    set { state.withLock { $0.livePhotos = newValue } }
  }

  /// The result of storing a Live Photo's photo.
  private enum PhotoStorage {
    /// The photo is stored in a file, or in memory if `path` is nil.
    case stored(path: String?)
    case lost
  }

  /// A movie that has ended, and its result.
  private struct EndedMovie {
    let request: LivePhotoRecorder.Request
    let report: Result<RecordingReport, MediaError>
  }

  /// Starts the movie of a photo that is not stored yet.
  private func beginMovie(
    of photo: Photo, _ time: Int64, _ identifier: String, _ settings: PhotoSettings
  ) {
    let id = photo.uniqueID
    guard let live = settings.livePhoto,
      let path = live.moviePath ?? photo.path.map({ "\($0.withoutExtension).mov" })
    else { return }
    let recorder = state.withLock { state in
      state.records[id]?.openEnds.insert(.movie)
      return state.livePhotos
    }
    let request = LivePhotoRecorder.Request(
      id: id, time: time, contentIdentifier: identifier, moviePath: path,
      overwrites: settings.destination.overwrites,
      embedsMovie: live.embedsMovie && photo.format == .jpeg, xmp: settings.xmp)
    guard let recorder else {
      return endMovie(
        request,
        .failure(MediaError(.cancelled, "photo \(id): Live Photos have been disabled")))
    }
    recorder.record(request)
  }

  /// Reports that the last frame of a movie was recorded.
  ///
  /// Called on the recorder's thread.
  func didRecordMovie(_ id: Int64) { send(.didFinishRecordingLivePhotoMovie(id: id)) }

  /// Finishes a movie, or keeps its result until the photo is stored.
  ///
  /// Called on the recorder's thread.
  func endMovie(
    _ request: LivePhotoRecorder.Request, _ report: Result<RecordingReport, MediaError>
  ) {
    let ended = EndedMovie(request: request, report: report)
    let isReady = state.withLock { state in
      if state.records[request.id]?.storage != nil { return true }
      state.records[request.id]?.endedMovie = ended
      return false
    }
    if isReady { finish(ended) }
  }

  /// Records whether the photo of a movie was stored.
  ///
  /// - Parameters:
  ///   - id: The number that identifies the capture.
  ///   - photo: The stored photo, or nil if it could not be stored.
  private func endPhotoOfMovie(_ id: Int64, _ photo: Photo?) {
    let ended = state.withLock { state in
      state.records[id]?.storage = photo.map { .stored(path: $0.path) } ?? .lost
      return state.records[id]?.endedMovie.take()
    }
    if let ended { finish(ended) }
  }

  /// Finishes a movie after its photo has been stored or has failed.
  private func finish(_ ended: EndedMovie) {
    let (request, id) = (ended.request, ended.request.id)
    let storage = state.withLock { $0.records[id]?.storage }
    let result = Result { () throws(MediaError) in
      let report = try ended.report.get()
      guard case .stored(let photoPath) = storage else {
        // The photo is missing, so the movie is removed.
        unlink(report.path.systemPath)
        throw MediaError(.cancelled, "photo \(id) was not stored, so its movie was removed")
      }
      if let problem = report.problem { throw problem }
      let time = report.trigger?.time ?? .zero
      let target = request.embedsMovie ? photoPath : nil
      if let target {
        try MotionPhotoFile.append(movie: report.path, to: target, at: time, request.xmp)
      }
      return LivePhotoMovie(
        path: report.path, contentIdentifier: request.contentIdentifier, duration: report.duration,
        photoDisplayTime: time, isEmbedded: target != nil)
    }
    if case .failure(let error) = result { note(error, of: id) }
    send(.didFinishLivePhotoMovie(id: id, result))
    endWait(for: id, .movie)
  }

  /// Whether a capture must continue, because it has neither been stopped nor ended.
  func isWanted(_ id: Int64) -> Bool {
    state.withLock { state in
      state.records[id].map { !$0.isStopRequested && $0.photosEnded == nil } ?? false
    }
  }

  /// Stores the value of Exif's field `Flash` for the photos of a capture.
  func setFlash(_ id: Int64, _ value: Int) { state.withLock { $0.records[id]?.flash = value } }
}

/// The state of the camera that is stored in the photos of a capture.
struct PhotoContext {
  /// The rotation of the connection to the camera when the photo was requested.
  var rotation = FrameRotation.none
  /// The value of Exif's field `Flash`, or nil if the camera has no light.
  var flash: Int?
}
