// SPDX-License-Identifier: Apache-2.0

import Logging
import OvercrankCapture
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

extension MovieFileOutput {
  /// Keeps the latest frames in memory, and records a clip around each trigger; blocks until the
  /// clip is finished, or where triggers repeat until ``stop()`` is called, the settings' duration
  /// is over or something fails.
  ///
  /// Where triggers repeat and the settings name no
  /// ``RecordingSettings/minFreeDiskSpaceLimit``, the capture ends while a twentieth of the disk is
  /// still free, but at most 512 MiB.
  ///
  /// The session is used as by ``record(progress:)``. The settings' duration is that of the
  /// whole capture; its number of frames counts those that arrive.
  ///
  /// - Parameters:
  ///   - triggers: What clips hold, and how many there may be.
  ///   - events: Told what happens, on this thread, which writes all the clips.
  /// - Returns: The report of the capture and of its clips; there is no file without a trigger.
  /// - Throws: `MediaError` when the codec does not go with the camera, the device cannot be started, or
  ///   there is no memory for the ring.
  public func record(
    on triggers: TriggerSettings, events: (TriggeredEvent) -> Void = { _ in }
  ) throws(MediaError) -> TriggeredReport {
    try whileJoined { () throws(MediaError) in try write(on: triggers, events) }
  }

  private func write(
    on triggers: TriggerSettings, _ events: (TriggeredEvent) -> Void
  ) throws(MediaError) -> TriggeredReport {
    let (input, session) = try source()
    let control = state.withLock { $0.control }
    let begins = !session.isRunning
    var settings = settings
    if triggers.repeats, settings.minFreeDiskSpaceLimit == nil {
      settings.minFreeDiskSpaceLimit = FreeSpace.reserve(at: settings.path)
    }
    state.withLock { $0.triggers.begin(triggers) }
    var take = TriggeredTake(
      input: input, settings: settings, triggers: triggers,
      plan: try settings.plan(for: input.delivery), control: control,
      audio: try listen(to: session, before: triggers.preDuration), beginsWithStream: begins)
    defer { state.withLock { $0.audio = nil } }
    let size = take.ringSize()
    let ring = try FrameQueue(
      capacity: size.bytes, largestFrame: input.maximumByteCount, recordCount: size.frames)
    var detectors: [any CaptureOutput] = []
    defer { for detector in detectors { session.removeOutput(detector) } }
    if let audio = triggers.audio { detectors.append(try listen(for: audio, in: session)) }
    if let motion = triggers.motion { detectors.append(try watch(for: motion, in: session)) }
    let begun = try begin(ring, of: input, in: session, alone: begins, control)
    defer { detach(of: session, stops: begins) }
    take.proof = begun.proof
    take.controls = input.controlValues()
    events(.waiting(ringBytes: ring.capacity))
    var report = take.write(
      from: ring, end: { begun.sink.end ?? CaptureEnd() },
      takeTriggers: { state.withLock { ($0.triggers.take(), $0.isLastTrigger) } }, tell: events)
    state.withLock { report.count($0.triggers) }
    for clip in report.clips { clip.log(to: session.logger) }
    for warning in report.warnings { session.logger.warning("\(warning)") }
    return report
  }

  /// Gives a trigger that happens now, from any thread.
  public func trigger(_ source: CaptureTrigger.Source = .call) {
    guard let camera = try? camera() else { return }
    // The writer, which drops frames that no trigger can need, takes triggers under this lock:
    // of an instant that it does not know, none is earlier than the frames that it has seen.
    state.withLock { state in
      state.triggers.append(
        CaptureTrigger(source: source, microseconds: camera.driver.microseconds()))
    }
  }

  /// Gives a trigger that happened up to a quarter of a second ago, from any thread.
  ///
  /// One that comes later may find that the ring has dropped its first frames.
  public func trigger(_ trigger: CaptureTrigger) {
    state.withLock { $0.triggers.append(trigger) }
  }

  /// Says that no more triggers will come: the capture ends with the clips that were begun.
  public func endTriggers() { state.withLock { $0.isLastTrigger = true } }

  /// Has loud sounds of the session give triggers.
  ///
  /// - Returns: What listens, until it is taken out of the session.
  private func listen(for audio: AudioTrigger, in session: CaptureSession) throws(MediaError)
    -> AudioDataOutput
  {
    let listener = AudioDataOutput()
    try session.addOutput(listener)
    guard session.connections.contains(where: { $0.output === listener }) else {
      session.removeOutput(listener)
      throw MediaError(
        .notConnected, "there is no sound to listen to for triggers",
        recovery: Recovery("choose a microphone", .change(.audioDevice), .listDevices))
    }
    let detector = Mutex(AudioTrigger.Detector(audio))
    listener.setSampleBufferHandler { [weak self] block in
      for time in detector.withLock({ $0.hear(block) }) {
        self?.trigger(CaptureTrigger(source: .audio, microseconds: time))
      }
    }
    return listener
  }

  /// Has motion in the session's pictures give triggers.
  ///
  /// - Returns: What watches, until it is taken out of the session.
  private func watch(for motion: MotionTrigger, in session: CaptureSession) throws(MediaError)
    -> VideoDataOutput
  {
    let watcher = VideoDataOutput()
    watcher.minFrameDuration = MotionTrigger.interval
    try session.addOutput(watcher)
    guard watcher.availablePixelFormats.contains(.gray) else {
      session.removeOutput(watcher)
      throw MediaError(
        .codecRefused, "motion cannot be seen in pictures that need each other, as this mode's do",
        recovery: Recovery("choose a format of MJPEG or uncompressed images", .change(.format)))
    }
    let detector = Mutex((motion: MotionTrigger.Detector(motion), gray: PixelBuffer(format: .gray)))
    watcher.setSampleBufferHandler { [weak self] sample in
      guard
        let time = try? sample.presentationTimeStamp.converted(
          to: 1_000_000, rounding: .towardNegativeInfinity
        ).value
      else { return }
      let isMotion = detector.withLock { detector in
        // A damaged picture shows no motion.
        guard (try? sample.convert(into: &detector.gray)) != nil else { return false }
        return detector.motion.see(detector.gray, at: time)
      }
      if isMotion {
        self?.trigger(CaptureTrigger(source: .motion, microseconds: time))
      }
    }
    return watcher
  }
}
