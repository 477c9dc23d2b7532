// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Logging
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
  private struct State {
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
    /// The sinks of a take that may continue after its camera was restarted, or nil.
    var reconnection: Reconnection?
    /// Triggers that have not been processed.
    var triggers = TriggerQueue()
    /// The reason why no more triggers will come, or nil while triggers may still come.
    var endOfTriggers: StopReason?
    /// The ring of a capture with triggers, and the encoding of its frames; nil at other times.
    var ring: (frames: FrameQueue.Reader, delivery: FrameDelivery)?
  }

  /// The options of the recording.
  public let settings: RecordingSettings
  private let state = Mutex(State())
  /// The recordings that have begun and whose files are not finished.
  private let recordings = DispatchGroup()
  private let hub = EventHub<Event>()
  private let progressHub = EventHub<Progress>(capacity: 1)
  private let triggerHub = EventHub<TriggeredEvent>()
  /// The metadata that the program has set, or nil if the metadata in the settings applies.
  private let changedMetadata = Mutex<[MetadataItem]?>(nil)

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

  /// Runs a closure while the output belongs to a session, such as a recording.
  ///
  /// If the output belongs to no session, it joins the session for which it was created, and leaves
  /// it afterwards.
  private func whileJoined<Result>(
    _ body: () throws(MediaError) -> Result
  ) throws(MediaError) -> Result {
    recordings.enter()
    defer { recordings.leave() }
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
  private func startRecording(_ path: String) throws(MediaError) {
    var settings = settings
    settings.path = path
    let chosen = settings
    try BlockingThread.started { [self] in
      // The error is also sent as an event, so it is ignored here.
      _ = try? record(chosen) { _ in }
    }.detach()
  }

  package func sink(
    for connection: CaptureConnection, from camera: DeviceInput
  ) throws(MediaError) -> (any FrameSink)? {
    let (take, reconnection) = state.withLock { ($0.take, $0.reconnection) }
    return try reconnection?.sink(from: camera) ?? take
  }

  package func finishRecordings() {
    guard recordings.wait(timeout: .now()) == .timedOut else { return }
    stop(.signal)
    recordings.wait()
  }

  package func willChangeMode() { state.withLock { $0.reconnection }?.willChangeMode() }

  package func didChangeMode() { state.withLock { $0.reconnection }?.didChangeMode() }

  package var takesAudioBlocks: Bool { true }

  package func audioSink(for connection: CaptureConnection) -> (any AudioBlockSink)? {
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
  private func recordFiles(
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

  private func offload<Report: Sendable>(
    _ body: @escaping @Sendable () throws(MediaError) -> Report
  ) async throws(MediaError) -> Report {
    try await BlockingThread.run(
      { _ throws(MediaError) in try body() }, onCancel: { [self] in stop() })
  }
}

// MARK: - Several files

extension MovieFileOutput {
  /// Records to one file after another until a limit, ``stop(_:)`` or an error.
  ///
  /// Blocks.
  ///
  /// No frame is lost between files. The session is used as in ``record(progress:)``. The limits on
  /// duration and number of frames apply to the whole take. The limit on file size applies to each
  /// file.
  ///
  /// - Parameters:
  ///   - segments: How the take is divided, and where its files are.
  ///   - events: Called on this thread, which writes the files.
  /// - Returns: The report of the take and its files. The take's `problem` is an error that occurred
  ///   after its start.
  /// - Throws: `MediaError` if the first file cannot be created, the device cannot be started, or no
  ///   frame was stored.
  public func record(
    in segments: SegmentSettings, events: (SegmentEvent) -> Void = { _ in }
  ) throws(MediaError) -> SegmentedReport {
    if let duration = segments.duration, duration <= .zero {
      throw MediaError(
        .badConfiguration, "a file of \(duration.seconds) s holds no frame",
        recovery: "choose a duration above zero")
    }
    if segments.reconnectTimeout != nil, settings.isBurst {
      throw MediaError(
        .badConfiguration, "a burst cannot wait for a lost camera",
        recovery: "record without a burst")
    }
    var settings = settings
    settings.path = segments.filePath(1)
    return try recordFiles(settings, segments, events)
  }

  /// Records to one file after another on a background thread, and suspends the task.
  ///
  /// Cancelling the task stops the take as ``stop(_:)`` does, and the files are kept.
  ///
  /// - Throws: `MediaError` as the blocking form does.
  public func record(
    in segments: SegmentSettings, events: @escaping @Sendable (SegmentEvent) -> Void = { _ in }
  ) async throws(MediaError) -> SegmentedReport {
    try await offload { () throws(MediaError) in try self.record(in: segments, events: events) }
  }

  /// Starts to record to a file on a background thread, or continues a running take in this file.
  ///
  /// A running take continues without a lost frame: the new file begins with the next frame, or
  /// with the next key frame if a camera delivers H.264. ``events`` report each file. If the file
  /// cannot be created, the take continues in the current one.
  ///
  /// - Throws: `MediaError` with `.badConfiguration` while a triggered recording runs, and with
  ///   `.outOfMemory` if no thread can be created.
  public func startRecording(to path: String) throws(MediaError) {
    enum Effect { case joins, starts, refuses }
    let effect = state.withLock { state -> Effect in
      if state.takesPaths || state.take == nil && state.isStarting {
        state.inbox.append(path: path)
        return .joins
      }
      guard state.take == nil else { return .refuses }
      state.isStarting = true
      return .starts
    }
    switch effect {
    case .joins: return
    case .starts:
      do throws(MediaError) { try startRecording(path) } catch {
        endStart()
        throw error
      }
    case .refuses:
      throw MediaError(
        .badConfiguration, "a triggered recording names its files itself",
        recovery: "stop it first")
    }
  }

  /// Adds a value to the timed metadata of the take, such as a measurement of another device.
  ///
  /// The file gets a timed metadata track (`mebx`), which `Asset.timedMetadata()` reads. The value
  /// is kept even if the process is killed. May be called from any thread, and before the take
  /// starts.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key, such as `com.example.speed`.
  ///   - frame: The index of the stored frame in the take, from 0. The frame may be in the current
  ///     file, or still to come. Nil selects the frame that is captured now.
  /// - Returns: False if 65 536 values already wait for the writer. The value is then dropped.
  /// - Throws: `MediaError` with `.invalidMetadata` for a key or value that a movie cannot store, or
  ///   a negative index; `.notConnected` if the output has no camera.
  @discardableResult
  public func append(
    _ value: MetadataValue, forKey key: String, atFrame frame: Int64? = nil
  ) throws(MediaError) -> Bool {
    try TimedMetadataItem.check(key, value)
    if let frame, frame < 0 {
      throw MediaError(
        .invalidMetadata, "the frame \(frame) of a metadata value is negative",
        recovery: "count frames from 0")
    }
    let position: PendingValue.Position =
      if let frame { .frame(frame) } else { .captured(try camera().driver.microseconds()) }
    return state.withLock { $0.inbox }
      .append(PendingValue(position: position, key: key, value: value))
  }

  /// Adds a value that belongs to the frame of a capture time, such as a metadata object.
  ///
  /// In all other respects, this method is like `append(_:forKey:atFrame:)`.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key, such as `com.example.speed`.
  ///   - captureTime: A time on the capture clock. The value belongs to the last frame at or before
  ///     this time, which may already be stored. If the file of that frame is finished, the value
  ///     is not stored, and a warning in the report counts it.
  /// - Returns: False if 65 536 values already wait for the writer. The value is then dropped.
  /// - Throws: `MediaError` with `.invalidMetadata` for a key or value that a movie cannot store.
  @discardableResult
  public func append(
    _ value: MetadataValue, forKey key: String, atCaptureTime captureTime: MediaTime
  ) throws(MediaError) -> Bool {
    try TimedMetadataItem.check(key, value)
    let microseconds = captureTime.wholeNanoseconds / 1_000
    return state.withLock { $0.inbox }
      .append(PendingValue(position: .frameTime(microseconds), key: key, value: value))
  }

  /// The metadata items of the file.
  ///
  /// Until this property is set, they are the items of `RecordingSettings.metadata`.
  ///
  /// May be changed before and during a take. A finished file contains the items set when it ended.
  /// An unfinished file contains the items set when it began.
  public var metadata: [MetadataItem] {
    get { changedMetadata.withLock { $0 } ?? settings.metadata }
    set { changedMetadata.withLock { $0 = newValue } }
  }
}

// MARK: - Triggers

extension MovieFileOutput {
  /// Keeps the latest frames in memory and records a clip around each trigger.
  ///
  /// Blocks.
  ///
  /// Without repeating triggers, the call returns after the clip is finished. With repeating
  /// triggers, it returns after ``stop(_:)``, the duration in the settings, or an error. If
  /// ``RecordingSettings/minFreeDiskSpaceLimit`` is nil, a capture with repeating triggers also
  /// ends when the free space falls below 5 % of the disk, at most 512 MiB.
  ///
  /// The session is used as in ``record(progress:)``. The limits in the settings apply to the whole
  /// capture. The frame limit counts arriving frames, not stored ones.
  ///
  /// - Parameters:
  ///   - triggers: The length and number of clips.
  ///   - events: Called on this thread, which writes all clips.
  /// - Returns: The report of the capture and its clips. Without a trigger no file is created.
  /// - Throws: `MediaError` if the codec does not fit the camera, the device cannot be started, or
  ///   the ring's memory is unavailable.
  public func record(
    on triggers: TriggerSettings, events: (TriggeredEvent) -> Void = { _ in }
  ) throws(MediaError) -> TriggeredReport {
    try whileJoined { () throws(MediaError) in
      try write(on: triggers) { event in
        triggerHub.send(event)
        if case .progress(let step) = event { progressHub.send(step) }
        events(event)
      }
    }
  }

  private func write(
    on triggers: TriggerSettings, _ events: (TriggeredEvent) -> Void
  ) throws(MediaError) -> TriggeredReport {
    let (input, session) = try source()
    let begins = !triggers.requiresRunningSession && !session.isRunning
    var settings = settings
    settings.metadata = metadata
    if triggers.repeats, settings.minFreeDiskSpaceLimit == nil {
      settings.minFreeDiskSpaceLimit = FreeSpace.reserve(at: settings.path)
    }
    state.withLock { $0.triggers.begin(triggers) }
    var configuration = try configuration(
      settings, of: input, in: session, begins: begins, keepingAudio: triggers.preDuration)
    defer { state.withLock { $0.audio = nil } }
    let ring = try TriggeredTake(configuration, triggers).makeRing()
    var detectors: [any CaptureOutput] = []
    defer { for detector in detectors { session.removeOutput(detector) } }
    if let audio = triggers.audio {
      detectors.append(try session.addTrigger(audio) { [weak self] in self?.trigger($0) })
    }
    if let motion = triggers.motion {
      detectors.append(try session.addTrigger(motion) { [weak self] in self?.trigger($0) })
    }
    var limit = settings.limit
    // The duration of such a capture begins later than its frames.
    if triggers.armsWhenFull { limit.duration = nil }
    let begun = try begin(ring, of: configuration, in: session, limit: limit) { _ in
      state.withLock { $0.ring = (ring.reader, input.delivery) }
    }
    defer { detach(of: session, stops: begins) }
    complete(&configuration, in: session)
    if triggers.audio != nil, configuration.audio == nil, let omitted = session.omittedInputs.first
    {
      throw omitted.error
    }
    events(.waiting(ringBytes: ring.capacity))
    let take = TriggeredTake(configuration, triggers, verification: begun.verification)
    var report = take.write(
      from: ring, end: { begun.sink.end ?? CaptureEnd() },
      arm: { range in state.withLock { $0.triggers.arm(duringMicroseconds: range) } },
      takeTriggers: { state.withLock { ($0.triggers.take(), $0.endOfTriggers) } }, notify: events)
    state.withLock { report.count($0.triggers) }
    for clip in report.clips { clip.log(to: session.logger) }
    for warning in report.warnings { session.logger.warning("\(warning)") }
    return report
  }

  /// Triggers a clip at the current time.
  ///
  /// May be called from any thread.
  public func trigger(_ source: CaptureTrigger.Source = .call) {
    guard let camera = try? camera() else { return }
    // The writer takes new triggers under the same lock. The time is therefore read under the lock,
    // too. A trigger that the writer takes next is then not earlier than any frame that the writer
    // has already seen. The writer relies on this when it releases old frames.
    state.withLock { state in
      state.triggers.append(
        CaptureTrigger(source: source, microseconds: camera.driver.microseconds()))
    }
  }

  /// Triggers a clip at a time up to 0.25 s ago.
  ///
  /// May be called from any thread.
  ///
  /// For an older trigger, the ring may no longer contain the first frames of the clip.
  public func trigger(_ trigger: CaptureTrigger) {
    state.withLock { $0.triggers.append(trigger) }
  }

  /// Announces that no more triggers will come.
  ///
  /// The capture ends after the clips in progress.
  ///
  /// - Parameter reason: The reason in the report. The first reason given is kept.
  public func endTriggers(_ reason: StopReason = .stopped) {
    state.withLock { $0.endOfTriggers = $0.endOfTriggers ?? reason }
  }

  /// The ring with the latest frames of a capture with triggers, and the encoding of these frames.
  ///
  /// Nil if no such capture runs. Any thread may read the frames while the capture stores them. A
  /// reader keeps the memory of the ring until it is dropped.
  package var ring: (frames: FrameQueue.Reader, delivery: FrameDelivery)? {
    state.withLock { $0.ring }
  }
}

// MARK: - Writing

extension MovieFileOutput {
  /// Writes the files of a take.
  private func write(
    _ settings: RecordingSettings, _ segments: SegmentSettings?,
    _ events: (SegmentEvent) -> Void
  ) throws(MediaError) -> Take.Written {
    let (input, session) = try source()
    let begins = !session.isRunning
    var configuration = try configuration(settings, of: input, in: session, begins: begins)
    defer { state.withLock { $0.audio = nil } }
    configuration.metadata = { [weak self] in self?.metadata ?? settings.metadata }
    let queue = try configuration.makeQueue()
    let file = try settings.makeFile()
    let (template, inbox) = (configuration, state.withLock { $0.inbox })
    var reconnection: Reconnection?
    let begun: (sink: TakeSink, verification: FrameRateVerification?)
    do throws(MediaError) {
      let reconnects = segments?.reconnectTimeout != nil
      begun = try begin(queue, of: template, in: session, reconnects: reconnects) { sink in
        if !settings.isBurst {
          reconnection = Reconnection(
            template,
            Reconnection.Stream(
              sink: sink, queue: queue, frameRate: template.input.negotiatedFrameRate),
            waits: reconnects)
        }
        state.withLock { ($0.takesPaths, $0.reconnection) = (true, reconnection) }
      }
    } catch {
      file.discard()
      throw error
    }
    defer { detach(of: session, stops: begins) }
    // This takes time. The queue keeps the frames that arrive meanwhile.
    complete(&configuration, in: session)
    events(.didStart(path: settings.path))
    let logger = session.logger
    logger.info(
      "the recording began", metadata: ["path": "\(settings.path)", "mode": "\(input.modeName)"])
    let take = Take(
      configuration, in: segments, inbox: inbox, verification: begun.verification)
    return try take.write(
      from: Reconnection.Stream(
        sink: begun.sink, queue: queue, frameRate: template.input.negotiatedFrameRate), into: file,
      reconnection: reconnection
    ) { event in
      switch event {
      case .file(let event): events(event)
      case .didEndStream(let report): report.log(to: logger)
      case .pause(true, let path): hub.send(.didPause(path: path))
      case .pause(false, let path): hub.send(.didResume(path: path))
      case .queue(let isFull, let path): reportQueue(isFull: isFull, path: path, to: logger)
      }
    }
  }

  /// Reports that the queue to the file is full, or has free space again.
  private func reportQueue(isFull: Bool, path: String, to logger: Logger) {
    hub.send(isFull ? .didFillQueue(path: path) : .didDrainQueue(path: path))
    if isFull {
      logger.warning("the queue to the file is full", metadata: ["path": "\(path)"])
    } else {
      logger.info("the queue to the file has room again", metadata: ["path": "\(path)"])
    }
  }

  /// Connects to the session's audio.
  ///
  /// Audio arrives after the next start of the session, or after `CaptureSession.refresh(_:)`,
  /// which asks the output for new sinks.
  ///
  /// `duration` is the length of the audio history to keep from before the take.
  private func listen(
    to session: CaptureSession, before duration: MediaTime = .zero
  ) throws(MediaError) -> TakeAudio? {
    var seconds = duration.doubleValue
    if settings.isBurst {
      // The audio of a burst is written only after its end, so the audio history must cover the
      // whole burst. A burst without a time limit ends when its memory is full. How long that takes
      // is unknown, because compressed frames vary in size. The history then has its greatest
      // length, 10 minutes.
      seconds = settings.limit.duration?.doubleValue ?? 600
    }
    let audio = try TakeAudio.of(
      session, into: self, settings, keeping: Int(max(0, min(seconds, 600)).rounded(.up)))
    state.withLock { $0.audio = audio?.feed }
    return audio
  }

  /// The reason why a take would leave out the audio of its camera, or nil.
  func audioRefusal() throws(MediaError) -> MediaError? {
    try whileJoined { () throws(MediaError) in
      try TakeAudio.omission(from: source().1, to: self, settings)
    }
  }

  /// The camera, and the session that it belongs to.
  private func source() throws(MediaError) -> (DeviceInput, CaptureSession) {
    let input = try camera()
    // In a configuration that is not committed, the output has not joined the session yet.
    guard let session = state.withLock({ $0.core ?? $0.owned })?.session else {
      throw MediaError(
        .notConnected, "the output for \(settings.path) belongs to no session",
        recovery: "commit the configuration first")
    }
    return (input, session)
  }

  /// Ends a take.
  ///
  /// If `stops` is true, the session was started for this take and is stopped. Otherwise the
  /// session continues, but sends no more frames to this output.
  private func detach(of session: CaptureSession, stops: Bool) {
    forget()
    // `refresh(_:)` may fail because of another output. The take is over and not affected, so the
    // error is ignored.
    if stops { session.stopRunning() } else { _ = try? session.refresh(self) }
  }

  /// The values with which a take begins.
  ///
  /// `begins` is whether the session is started for the take. `duration` is the length of the audio
  /// history to keep from before the take.
  private func configuration(
    _ settings: RecordingSettings, of input: DeviceInput, in session: CaptureSession, begins: Bool,
    keepingAudio duration: MediaTime = .zero
  ) throws(MediaError) -> TakeConfiguration {
    let plan = try settings.plan(for: input.delivery)
    return TakeConfiguration(
      input: input, settings: settings, plan: plan, control: state.withLock { $0.control },
      audio: try listen(to: session, before: duration), beginsWithStream: begins,
      geometry: session.connections.first {
        $0.output === self && $0.mediaType == .video
      }?.geometry)
  }

  /// Sets the values that are known only while the session runs.
  private func complete(_ configuration: inout TakeConfiguration, in session: CaptureSession) {
    configuration.controls = configuration.input.controlValues()
    guard configuration.audio != nil else { return }
    // The session may have omitted an optional microphone when it started.
    let isHeard = session.connections.contains { $0.output === self && $0.mediaType == .audio }
    if !isHeard {
      configuration.audio = nil
      state.withLock { $0.audio = nil }
    }
  }

  /// Verifies the camera's frame rate, and then starts to queue frames.
  private func begin(
    _ queue: FrameQueue, of take: TakeConfiguration, in session: CaptureSession,
    limit: CaptureLimit? = nil, reconnects: Bool = false, _ prepare: (TakeSink) -> Void
  ) throws(MediaError) -> (sink: TakeSink, verification: FrameRateVerification?) {
    let (input, control, alone) = (take.input, take.control, take.beginsWithStream)
    let sink = TakeSink(
      limit: limit ?? settings.limit, queue: queue, control: control, endsCapture: alone,
      endsWhenFull: settings.isBurst, copiesBesideOthers: input.delivery.isCompressed)
    do throws(MediaError) {
      var verification: FrameRateVerification?
      if alone, settings.verifiesFrameRate, input.device.kind == .v4l2 {
        verification = try input.verifyFrameRate { control.requestedStop != nil }
      }
      prepare(sink)
      try begin(sink, of: input, in: session, alone: alone, control, reconnects: reconnects)
      return (sink, verification)
    } catch {
      forget()
      throw error
    }
  }

  /// Resets the state of a take that has ended.
  private func forget() {
    let inbox = state.withLock { state in
      defer { state = State(core: state.core, owned: state.owned) }
      return state.inbox
    }
    refusePaths(of: inbox)
  }

  /// Drops the requests to a take that could not be started.
  private func endStart() {
    let inbox = state.withLock { state -> TakeInbox? in
      state.isStarting = false
      return state.take == nil ? state.inbox : nil
    }
    if let inbox { refusePaths(of: inbox) }
  }

  private func refusePaths(of inbox: TakeInbox) {
    while let path = inbox.takePath() {
      let error = MediaError(.cancelled, "the recording ended before \(path) began")
      hub.send(.didFail(path: path, error))
    }
  }

  /// Starts to send frames to a take.
  private func begin(
    _ sink: TakeSink, of input: DeviceInput, in session: CaptureSession, alone: Bool,
    _ control: CaptureControl, reconnects: Bool
  ) throws(MediaError) {
    state.withLock { $0.take = sink }
    if alone, try session.run(with: control, resumes: reconnects) { return }
    // The session was already running, so the take starts now and not at the start of the stream.
    control.didSwitchOn(atMicroseconds: input.driver.microseconds())
    guard try session.refresh(self) else {
      throw MediaError(
        .notConnected, "the session stopped before the recording to \(settings.path) started",
        recovery: "start it again")
    }
  }
}
