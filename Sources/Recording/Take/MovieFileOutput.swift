// SPDX-License-Identifier: Apache-2.0

public import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// An output that records a session to a movie file.
///
/// While the file grows, it is written in fragments of 150 ms. If the process is killed, at most
/// 0.25 s are lost. At the end, the file becomes a plain movie.
///
/// ```swift
/// let output = try MovieFileOutput(session: session, settings: RecordingSettings(path: "a.mov"))
/// let report = try output.record()
/// ```
///
/// All calls may come from any thread. ``record(progress:)`` blocks until the take ends; its
/// `async` form suspends the task. ``stop(_:)``, ``pause()``, ``resume()`` and triggers return at
/// once.
public final class MovieFileOutput: FrameOutput {
  struct State {
    /// The session that the output belongs to, or nil.
    var core: SessionCore?
    /// The session that the output was created for, or nil.
    ///
    /// The output belongs to this session only while it records.
    var owned: SessionCore?
    var take: TakeSink?
    var audio: AudioTap?
    var control = CaptureControl()
    /// Requests to the take, including those made before its start.
    var inbox = TakeInbox()
    /// Whether the running take accepts further files.
    var takesPaths = false
    /// Whether a take was requested but has not begun.
    var isStarting = false
    /// The sinks of a take that waits for a lost camera, or nil for any other take.
    var reconnection: Reconnection?
    /// Triggers that have not been processed.
    var triggers = TriggerQueue()
    /// The reason why no more triggers will come, or nil while triggers may still come.
    var endOfTriggers: StopReason?
  }

  /// The options of the recording.
  public let settings: RecordingSettings
  let state = Mutex(State())
  let hub = EventHub<Event>()
  let progressHub = EventHub<Progress>(capacity: 1)
  let triggerHub = EventHub<TriggeredEvent>()
  /// The metadata that the program has set, or nil if the metadata in the settings applies.
  let changedMetadata = Mutex<[MetadataItem]?>(nil)

  /// The session to which the output was added; if it was added to none, the session for which it
  /// was created.
  ///
  /// The output keeps the inputs of this session alive, and the session itself while it runs. If
  /// the session is not running and the program holds no reference to its object, this is a new
  /// object for the same session.
  public var session: CaptureSession? { state.withLock { $0.core ?? $0.owned }?.session }

  /// The media types that the output accepts: video and audio.
  public var mediaTypes: [MediaType] { [.video, .audio] }

  /// Creates an output, to be added to a session.
  public init(settings: RecordingSettings) { self.settings = settings }

  /// Creates an output for a session, and checks the settings against the session's camera.
  ///
  /// The output joins the session while it records. No file is created yet.
  ///
  /// - Throws: `MediaError` with `.codecRefused` and advice, `.badConfiguration` if the session
  ///   rejects the output, or `.notConnected` if the session has no camera.
  public convenience init(session: CaptureSession, settings: RecordingSettings) throws(MediaError) {
    self.init(settings: settings)
    state.withLock { $0.owned = session.core }
    try whileJoined { () throws(MediaError) in _ = try settings.plan(for: camera().delivery) }
  }

  /// Runs a closure while the output belongs to a session.
  ///
  /// If the output belongs to no session, it joins the session for which it was created, and leaves
  /// it afterwards.
  func whileJoined<Result>(
    _ body: () throws(MediaError) -> Result
  ) throws(MediaError) -> Result {
    let owned = state.withLock { $0.core == nil ? $0.owned : nil }?.session
    try owned?.addOutput(self)
    defer { owned?.removeOutput(self) }
    return try body()
  }

  /// The events of recordings from the time of this call.
  ///
  /// Each iteration buffers the newest 256 events.
  public var events: some AsyncSequence<Event, Never> & Sendable { hub.events() }

  /// The progress of takes from the time of this call.
  ///
  /// An update is sent each time the writer has stored all queued frames. If more frames keep
  /// arriving, an update is sent after 8 frames at the latest. A slow consumer gets only the newest
  /// update.
  public var progress: some AsyncSequence<Progress, Never> & Sendable { progressHub.events() }

  /// Events of `record(on:events:)` from the time of this call.
  ///
  /// Each listener buffers the newest 256 events.
  public var triggeredEvents: some AsyncSequence<TriggeredEvent, Never> & Sendable {
    triggerHub.events()
  }

  /// Stops the take.
  ///
  /// May be called before the take has started.
  ///
  /// - Parameter reason: The reason in the report. The first reason given is kept.
  public func stop(_ reason: StopReason = .stopped) {
    state.withLock { $0.control }.stop(reason)
  }

  /// Pauses the take: leaves out frames and audio from the next frame until ``resume()``.
  ///
  /// May be called before the take starts.
  ///
  /// In the file, the part after the pause follows directly. The frame periods of the pause are not
  /// in the ledger, and the report lists each pause. If a camera delivers H.264, the frames after a
  /// pause up to the next key frame cannot be decoded, so they count as lost. Triggered recordings
  /// cannot be paused.
  public func pause() { state.withLock { $0.control }.isPaused.store(true, ordering: .relaxed) }

  /// Ends a pause with the next frame.
  public func resume() { state.withLock { $0.control }.isPaused.store(false, ordering: .relaxed) }

  /// Whether the recording is paused.
  public var isRecordingPaused: Bool {
    state.withLock { $0.control }.isPaused.load(ordering: .relaxed)
  }

  /// Whether a take is running.
  public var isRecording: Bool { state.withLock { $0.take != nil } }

  /// Starts to record on a background thread.
  ///
  /// ``events`` report the result.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  public func startRecording() throws(MediaError) { try startRecording(settings.path) }

  /// Starts to record to a path on a background thread.
  func startRecording(_ path: String) throws(MediaError) {
    var settings = settings
    settings.path = path
    let chosen = settings
    try BlockingThread.started { [self] in
      // The error is also sent as an event, so it is ignored here.
      _ = try? record(chosen) { _ in }
    }.detach()
  }

  package func sink(
    for connection: CaptureConnection
  ) throws(MediaError) -> (any FrameSink)? {
    guard connection.mediaType == .video else { return nil }
    let (take, reconnection) = state.withLock { ($0.take, $0.reconnection) }
    return try reconnection?.sink() ?? take
  }

  package var takesAudioBlocks: Bool { true }

  package func audioSink(for connection: CaptureConnection) -> (any AudioSink)? {
    state.withLock { $0.audio }.flatMap { $0.isFeed(of: connection) ? $0 : nil }
  }

  package func didJoin(_ session: CaptureSession?) {
    state.withLock { $0.core = session?.core }
  }

  /// The camera that the output's session contains.
  func camera() throws(MediaError) -> DeviceInput {
    let (core, owned) = state.withLock { ($0.core, $0.owned) }
    // Between recordings the output is attached to no session. The camera is then that of the
    // session that the output was created for.
    let camera =
      if let core {
        core.session.connections.first { $0.output === self && $0.mediaType == .video }?.camera
      } else {
        owned?.session.inputs.lazy.compactMap { $0 as? DeviceInput }.first
      }
    guard let camera else {
      throw MediaError(
        .notConnected, "the output for \(settings.path) is not connected to a camera",
        recovery: "add it to a session with a camera")
    }
    return camera
  }

  /// The level of each audio channel over the last 300 ms.
  ///
  /// Empty while not recording audio.
  public var levels: [AudioLevel] { state.withLock { $0.audio }?.levels ?? [] }

  /// Records until a limit, ``stop(_:)`` or an error.
  ///
  /// Blocks.
  ///
  /// If the session is not running, it is started for the take and stopped afterwards. In a running
  /// session, the take begins with the next frame, and the session continues.
  ///
  /// - Parameter progress: Called on this thread each time all queued frames have been stored, and
  ///   after 8 frames at the latest.
  /// - Returns: The report. Its `problem` is an error that occurred after the start of the take.
  /// - Throws: `MediaError` if the file cannot be created, the device cannot be started, or no
  ///   frame was stored. No file remains then.
  public func record(progress: (Progress) -> Void = { _ in }) throws(MediaError) -> RecordingReport
  {
    try record(settings, progress)
  }

  private func record(
    _ settings: RecordingSettings, _ progress: (Progress) -> Void
  ) throws(MediaError) -> RecordingReport {
    let report = try recordFiles(settings, nil) { event in
      if case .progress(let step) = event { progress(step) }
    }
    return report.files.first ?? report.take
  }

  /// Records the files of a take, and reports its events.
  func recordFiles(
    _ settings: RecordingSettings, _ segments: SegmentSettings?, _ events: (SegmentEvent) -> Void
  ) throws(MediaError) -> SegmentedReport {
    do throws(MediaError) {
      let written = try whileJoined { () throws(MediaError) in
        try write(settings, segments) { event in
          switch event {
          case .didStart(let path): hub.send(.didStart(path: path))
          case .didFinish(let report): hub.send(.didFinish(report))
          case .didFail(let path, let error): hub.send(.didFail(path: path, error))
          case .progress(let step): progressHub.send(step)
          case .waitingForDevice: break
          }
          events(event)
        }
      }
      if !written.isReported, let last = written.report.files.last {
        hub.send(.didFinish(last))
        events(.didFinish(last))
      }
      return written.report
    } catch {
      hub.send(.didFail(path: settings.path, error))
      endStart()
      throw error
    }
  }

  /// Records on a background thread until a limit, ``stop(_:)`` or an error, and suspends the task.
  ///
  /// Cancelling the task stops the take as ``stop(_:)`` does, and the recording is kept. The
  /// property ``progress`` reports the progress of the take.
  ///
  /// - Returns: The report. Its `problem` is an error that occurred after the start of the take.
  /// - Throws: `MediaError` as the blocking form does.
  public func record() async throws(MediaError) -> RecordingReport {
    try await offload { () throws(MediaError) in try self.record() }
  }

  /// Records around triggers on a background thread, and suspends the task until the clips are
  /// finished.
  ///
  /// Cancelling the task stops the capture as ``stop(_:)`` does. Clips that have started are kept.
  ///
  /// - Parameters:
  ///   - triggers: The length and number of clips.
  ///   - events: Called on the thread that writes the clips.
  /// - Returns: The report of the capture and its clips.
  /// - Throws: `MediaError` as the blocking form does.
  public func record(
    on triggers: TriggerSettings, events: @escaping @Sendable (TriggeredEvent) -> Void = { _ in }
  ) async throws(MediaError) -> TriggeredReport {
    try await offload { () throws(MediaError) in try self.record(on: triggers, events: events) }
  }

  func offload<Report: Sendable>(
    _ body: @escaping @Sendable () throws(MediaError) -> Report
  ) async throws(MediaError) -> Report {
    let result: Result<Report, MediaError>
    do throws(CallFailure) {
      result = try await BlockingThread.run(
        { _ throws(MediaError) in try body() }, onCancel: { [self] in stop() })
    } catch { throw MediaError(.outOfMemory, error.description) }
    return try result.get()
  }
}
