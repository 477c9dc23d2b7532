// SPDX-License-Identifier: Apache-2.0

import Logging
public import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankLibAV
import OvercrankLinuxSystem
public import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// Records what a session captures into a movie file.
///
/// While it grows the file is written in fragments of 150 ms, so that a kill loses no more than
/// a quarter of a second; at the end it becomes a plain movie.
///
/// ```swift
/// let output = try MovieFileOutput(session: session, settings: RecordingSettings(path: "a.mov"))
/// let report = try output.record()
/// ```
///
/// All calls may come from any thread. ``record(progress:)`` blocks the calling thread until the
/// take has ended, and its `async` form suspends its task instead; ``stop()``, ``pause()``,
/// ``resume()`` and triggers return at once.
public final class MovieFileOutput: FrameOutput {
  struct State {
    weak var session: CaptureSession?
    /// The session that the output was made for, which it joins while it records.
    var owned: CaptureSession?
    var take: TakeSink?
    var audio: AudioTap?
    var control = CaptureControl()
    /// Triggers that no thread has looked at.
    var triggers = TriggerQueue()
    /// Whether no more triggers will come.
    var isLastTrigger = false
  }

  /// What the take is to become.
  public let settings: RecordingSettings
  let state = Mutex(State())
  private let hub = EventHub<Event>()
  private let progressHub = EventHub<Progress>(capacity: 1)

  /// Pictures, and the sound beside them.
  public var mediaTypes: [MediaType] { [.video, .audio] }

  /// What may be told while a take is recorded.
  public struct Progress: Hashable, Sendable {
    /// Frames stored so far.
    public var stored: Int64
    /// Frames missing so far, of any cause.
    public var missing: Int64
    /// How long the file plays so far.
    public var duration: MediaTime
    /// How full the queue to the writer is, from 0 to 1, for display.
    public var queueFill: Double
    /// Bytes written so far.
    public var bytes: Int64
    /// How loud each channel of the sound is, over the last 300 ms; none where there is none.
    public var levels: [AudioLevel] = []
  }

  /// What happens to a recording.
  public enum Event: Sendable {
    /// Frames go into the file of this path.
    case didStart(path: String)
    /// Frames are left out from now on.
    case didPause(path: String)
    /// Frames go into the file again.
    case didResume(path: String)
    /// The file is finished, or what went wrong is in the report beside what could be kept.
    case didFinish(RecordingReport)
    /// Nothing was recorded, and there is no file.
    case didFail(path: String, MediaError)
  }

  /// What happens while clips wait for their triggers.
  public enum TriggeredEvent: Sendable {
    /// Frames go into the ring, which may take so many bytes.
    case waiting(ringBytes: Int)
    /// A trigger came, and its clip was begun.
    case triggered(CaptureTrigger, clip: Int)
    /// More of a clip is stored.
    case progress(Progress)
    /// A clip is finished.
    case finished(RecordingReport)
  }

  /// Makes an output that is to be added to a session.
  public init(settings: RecordingSettings) { self.settings = settings }

  /// Makes an output for a session, and checks that the settings go with what the session
  /// delivers; no file is touched yet.
  ///
  /// The output keeps the session alive, and joins it for as long as it records.
  ///
  /// - Throws: `MediaError` with `.codecRefused` and what to choose instead, `.badConfiguration`
  ///   where the session does not take the output, or `.notConnected` where it has no camera.
  public convenience init(session: CaptureSession, settings: RecordingSettings) throws(MediaError) {
    self.init(settings: settings)
    state.withLock { $0.owned = session }
    try whileJoined { () throws(MediaError) in _ = try settings.plan(for: camera().delivery) }
  }

  /// Does something while the output is in the session that it was made for, or in any other that
  /// it was added to.
  func whileJoined<Result>(
    _ body: () throws(MediaError) -> Result
  ) throws(MediaError) -> Result {
    let owned = state.withLock { $0.session == nil ? $0.owned : nil }
    try owned?.addOutput(self)
    defer { owned?.removeOutput(self) }
    return try body()
  }

  /// What happens to recordings from now on, for any number of listeners; of events that nobody
  /// takes the newest 256 are kept.
  public var events: some AsyncSequence<Event, Never> & Sendable { hub.events() }

  /// How far takes are, from now on.
  ///
  /// A step comes when the frames that waited are stored, or those of a fiftieth of a second. A
  /// slow listener gets the newest alone.
  public var progress: some AsyncSequence<Progress, Never> & Sendable { progressHub.events() }

  /// Ends the take; may be called from any thread, also before it has begun.
  public func stop() { state.withLock { $0.control }.stop(.signal) }

  /// Leaves out frames and sound from the next frame on, until ``resume()``; from any thread, also
  /// before the take has begun.
  ///
  /// In the file, what comes after the pause follows at once on what came before. The ledger counts
  /// none of the periods between; the report names each pause. An H.264 camera's frames count as
  /// lost from the end of a pause to its next key frame. A capture that waits for triggers is not
  /// paused.
  public func pause() { state.withLock { $0.control }.isPaused.store(true, ordering: .relaxed) }

  /// Ends a pause with the next frame; from any thread.
  public func resume() { state.withLock { $0.control }.isPaused.store(false, ordering: .relaxed) }

  /// Whether frames are being left out.
  public var isRecordingPaused: Bool {
    state.withLock { $0.control }.isPaused.load(ordering: .relaxed)
  }

  /// Whether a take goes on.
  public var isRecording: Bool { state.withLock { $0.take != nil } }

  /// Records as ``record(progress:)`` does, on a thread of its own; ``events`` tell how it goes.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` where there is no thread to be had.
  public func startRecording() throws(MediaError) {
    try BlockingThread.started { [self] in
      // What it throws is told by an event.
      _ = try? record()
    }.detach()
  }

  package func sink(for connection: CaptureConnection) -> (any FrameSink)? {
    connection.mediaType == .video ? state.withLock { $0.take } : nil
  }

  package var takesAudioBlocks: Bool { true }

  package func audioSink(for connection: CaptureConnection) -> (any AudioSink)? {
    state.withLock { $0.audio }.flatMap { $0.isFeed(of: connection) ? $0 : nil }
  }

  package func didJoin(_ session: CaptureSession?) { state.withLock { $0.session = session } }

  /// Where pictures come from.
  func camera() throws(MediaError) -> DeviceInput {
    let (session, owned) = state.withLock { ($0.session, $0.owned) }
    let connections = session?.connections.filter { $0.output === self && $0.mediaType == .video }
    // Between recordings it is in no session, but known to be able to join.
    let camera =
      session == nil
      ? owned?.inputs.lazy.compactMap { $0 as? DeviceInput }.first : connections?.first?.camera
    guard let camera else {
      throw MediaError(
        .notConnected, "the output for \(settings.path) is connected to no camera",
        recovery: "add it to a session that has an input, and keep the session")
    }
    return camera
  }

  /// How loud each channel of the sound is, over the last 300 ms; none while nothing listens.
  public var levels: [AudioLevel] { state.withLock { $0.audio }?.levels ?? [] }

  /// Records until a limit is reached, ``stop()`` is called or something fails; blocks till then.
  ///
  /// A session that does not run is started for the take and stopped at its end. In one that
  /// runs, the take begins with the next frame, and the session goes on.
  ///
  /// - Parameter progress: Called on this thread when the frames that waited are stored, or those of
  ///   a fiftieth of a second, and at the end.
  /// - Returns: The report; its `problem` tells what went wrong after the take had begun.
  /// - Throws: `MediaError` when the file cannot be created, or the device cannot be started and nothing
  ///   was recorded.
  public func record(progress: (Progress) -> Void = { _ in }) throws(MediaError) -> RecordingReport
  {
    do throws(MediaError) {
      let report = try whileJoined { () throws(MediaError) in try write(progress) }
      hub.send(.didFinish(report))
      return report
    } catch {
      hub.send(.didFail(path: settings.path, error))
      throw error
    }
  }

  /// Records on a thread of its own until a limit is reached, ``stop()`` is called or something
  /// fails, and suspends the task till then.
  ///
  /// Cancelling the task ends the take as ``stop()`` does: what was recorded is kept. ``progress``
  /// tells how it goes.
  ///
  /// - Returns: The report; its `problem` tells what went wrong after the take had begun.
  /// - Throws: `MediaError` as the form that blocks.
  public func record() async throws(MediaError) -> RecordingReport {
    try await offload { () throws(MediaError) in try self.record() }
  }

  /// Records around triggers on a thread of its own, and suspends the task until the clips are
  /// finished.
  ///
  /// Cancelling the task ends the capture as ``stop()`` does: clips that were begun are kept.
  ///
  /// - Parameters:
  ///   - triggers: What clips hold, and how many there may be.
  ///   - events: Told what happens, on the thread that writes the clips.
  /// - Returns: The report of the capture and of its clips.
  /// - Throws: `MediaError` as the form that blocks.
  public func record(
    on triggers: TriggerSettings, events: @escaping @Sendable (TriggeredEvent) -> Void = { _ in }
  ) async throws(MediaError) -> TriggeredReport {
    try await offload { () throws(MediaError) in try self.record(on: triggers, events: events) }
  }

  private func offload<Report: Sendable>(
    _ body: @escaping @Sendable () throws(MediaError) -> Report
  ) async throws(MediaError) -> Report {
    let result: Result<Report, MediaError>
    do throws(SystemError) {
      result = try await BlockingThread.run(
        { _ throws(MediaError) in try body() }, onCancel: { [self] in stop() })
    } catch { throw MediaError(.outOfMemory, error.description) }
    return try result.get()
  }

  private func write(_ progress: (Progress) -> Void) throws(MediaError) -> RecordingReport {
    let (input, session) = try source()
    let control = state.withLock { $0.control }
    let audio = try listen(to: session)
    defer { state.withLock { $0.audio = nil } }
    let begins = !session.isRunning
    var take = MovieTake(
      input: input, settings: settings, plan: try settings.plan(for: input.delivery),
      control: control, audio: audio, beginsWithStream: begins)
    let queue = try take.makeQueue()
    var file: MovieFile
    do throws(MovieFile.CreationError) {
      file = try MovieFile(creating: settings.path, overwrites: settings.overwrites)
    } catch { throw MediaError(error) }
    let begun: (sink: TakeSink, proof: FrameRateVerification?)
    do throws(MediaError) {
      begun = try begin(queue, of: input, in: session, alone: begins, control)
    } catch {
      file.discard()
      throw error
    }
    defer { detach(of: session, stops: begins) }
    // On the thread that stores: meanwhile frames wait in the queue.
    take.controls = input.controlValues()
    hub.send(.didStart(path: settings.path))
    session.logger.info(
      "the recording began", metadata: ["path": "\(settings.path)", "mode": "\(input.modeName)"])
    let report = try take.write(
      from: queue, of: begun.sink, into: file, proof: begun.proof,
      pressure: { session.setPressure($0, on: self) },
      paused: { hub.send($0 ? .didPause(path: settings.path) : .didResume(path: settings.path)) },
      progress: { step in
        progressHub.send(step)
        progress(step)
      })
    report.log(to: session.logger)
    return report
  }

  /// Has the session's sound come here, from when it is next started or refreshed on; also that of
  /// some time before a take begins.
  func listen(
    to session: CaptureSession, before duration: MediaTime = .zero
  ) throws(MediaError) -> TakeAudio? {
    var seconds = duration.doubleValue
    if settings.isBurst {
      // Frames may be much smaller than the largest, so nobody knows how long memory holds them.
      seconds = settings.limit.duration?.doubleValue ?? 600
    }
    let audio = try TakeAudio.of(
      session, into: self, settings, keeping: Int(max(0, min(seconds, 600)).rounded(.up)))
    state.withLock { $0.audio = audio?.feed }
    return audio
  }

  /// Where pictures come from, and the session that brings them.
  func source() throws(MediaError) -> (DeviceInput, CaptureSession) {
    let input = try camera()
    guard let session = state.withLock({ $0.session }) else { return try source() }
    return (input, session)
  }

  /// Ends what was begun for a take: whatever else ran for it, such as a microphone, ends with it;
  /// a session that runs on drops it.
  func detach(of session: CaptureSession, stops: Bool) {
    forget()
    // The take is over; what other outputs lack was an error when they began.
    if stops { session.stopRunning() } else { _ = try? session.refresh(self) }
  }

  /// Has frames go into a queue, after the camera's rate was proved.
  func begin(
    _ queue: FrameQueue, of input: DeviceInput, in session: CaptureSession, alone: Bool,
    _ control: CaptureControl
  ) throws(MediaError) -> (sink: TakeSink, proof: FrameRateVerification?) {
    let sink = TakeSink(
      limit: settings.limit, queue: queue, control: control, endsCapture: alone,
      endsWhenFull: settings.isBurst, copiesBesideOthers: input.delivery.isCompressed)
    do throws(MediaError) {
      var proof: FrameRateVerification?
      if alone, settings.verifiesFrameRate, input.device.kind == .v4l2 {
        proof = try input.verifyFrameRate { control.requestedStop != nil }
      }
      try begin(sink, of: input, in: session, alone: alone, control)
      return (sink, proof)
    } catch {
      forget()
      throw error
    }
  }

  /// Forgets what was asked of a take that is over.
  private func forget() {
    state.withLock { $0 = State(session: $0.session, owned: $0.owned) }
  }

  /// Has frames go into a take.
  private func begin(
    _ sink: TakeSink, of input: DeviceInput, in session: CaptureSession, alone: Bool,
    _ control: CaptureControl
  ) throws(MediaError) {
    state.withLock { $0.take = sink }
    if alone, try session.run(with: control) { return }
    // Before this there was no take.
    control.switchedOn.store(input.driver.microseconds(), ordering: .relaxed)
    guard try session.refresh(self) else {
      throw MediaError(
        .notConnected, "the session stopped before the take for \(settings.path) began",
        recovery: "start it again")
    }
  }
}
