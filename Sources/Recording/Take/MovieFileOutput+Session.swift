// SPDX-License-Identifier: Apache-2.0

import Logging
import OvercrankCapture
import OvercrankDeviceDiscovery
import OvercrankMediaCore
import Synchronization

extension MovieFileOutput {
  /// Reports that the queue to the file is full, or has free space again.
  func reportQueue(isFull: Bool, path: String, to logger: Logger) {
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
  func listen(
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

  /// The camera, and the session that it belongs to.
  func source() throws(MediaError) -> (DeviceInput, CaptureSession) {
    let input = try camera()
    guard let session = state.withLock({ $0.core })?.session else { return try source() }
    return (input, session)
  }

  /// Ends a take.
  ///
  /// If `stops` is true, the session was started for this take and is stopped. Otherwise the
  /// session continues, but sends no more frames to this output.
  func detach(of session: CaptureSession, stops: Bool) {
    forget()
    // `refresh(_:)` may fail because of another output. The take is over and not affected, so the
    // error is ignored.
    if stops { session.stopRunning() } else { _ = try? session.refresh(self) }
  }

  /// Verifies the camera's frame rate, and then starts to queue frames.
  func begin(
    _ queue: FrameQueue, of input: DeviceInput, in session: CaptureSession, alone: Bool,
    _ control: CaptureControl, reconnects: Bool = false,
    _ prepare: (TakeSink) -> Void = { _ in }
  ) throws(MediaError) -> (sink: TakeSink, verification: FrameRateVerification?) {
    let sink = TakeSink(
      limit: settings.limit, queue: queue, control: control, endsCapture: alone,
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
  func endStart() {
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
    control.switchedOn.store(input.driver.microseconds(), ordering: .relaxed)
    guard try session.refresh(self) else {
      throw MediaError(
        .notConnected, "the session stopped before the recording to \(settings.path) started",
        recovery: "start it again")
    }
  }
}
