// SPDX-License-Identifier: Apache-2.0

import Logging
public import OvercrankCapture
import OvercrankDeviceDiscovery
public import OvercrankMediaCore
import Synchronization

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
  /// capture: its duration, and the number of arriving frames.
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
    let control = state.withLock { $0.control }
    let begins = !session.isRunning
    var settings = settings
    settings.metadata = metadata
    if triggers.repeats, settings.minFreeDiskSpaceLimit == nil {
      settings.minFreeDiskSpaceLimit = FreeSpace.reserve(at: settings.path)
    }
    state.withLock { $0.triggers.begin(triggers) }
    var take = TriggeredTake(
      input: input, settings: settings, triggers: triggers,
      plan: try settings.plan(for: input.delivery), control: control,
      audio: try listen(to: session, before: triggers.preDuration), beginsWithStream: begins)
    defer { state.withLock { $0.audio = nil } }
    take.geometry = geometry(in: session)
    let size = take.ringSize()
    let ring = try FrameQueue(
      capacity: size.bytes, largestFrame: input.maximumByteCount, recordCount: size.frames)
    var detectors: [any CaptureOutput] = []
    defer { for detector in detectors { session.removeOutput(detector) } }
    if let audio = triggers.audio { detectors.append(try listen(for: audio, in: session)) }
    if let motion = triggers.motion { detectors.append(try watch(for: motion, in: session)) }
    let begun = try begin(ring, of: input, in: session, alone: begins, control)
    defer { detach(of: session, stops: begins) }
    take.verification = begun.verification
    take.controls = input.controlValues()
    events(.waiting(ringBytes: ring.capacity))
    var report = take.write(
      from: ring, end: { begun.sink.end ?? CaptureEnd() },
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
    // The writer takes new triggers under the same lock. Because the time is read under the lock
    // too, a trigger that the writer takes next is not earlier than any frame that the writer has
    // already seen. The writer relies on this when it releases old frames.
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

  /// Adds an output that triggers clips by loud audio.
  ///
  /// - Returns: The output, to be removed from the session.
  private func listen(for audio: AudioTrigger, in session: CaptureSession) throws(MediaError)
    -> AudioDataOutput
  {
    let listener = AudioDataOutput()
    try session.addOutput(listener)
    guard session.connections.contains(where: { $0.output === listener }) else {
      session.removeOutput(listener)
      throw MediaError(
        .notConnected, "audio triggers need audio, and the session has none",
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

  /// Adds an output that triggers clips by motion.
  ///
  /// - Returns: The output, to be removed from the session.
  private func watch(for motion: MotionTrigger, in session: CaptureSession) throws(MediaError)
    -> VideoDataOutput
  {
    let watcher = VideoDataOutput()
    watcher.minFrameDuration = MotionTrigger.interval
    try session.addOutput(watcher)
    guard watcher.availablePixelFormats.contains(.gray) else {
      session.removeOutput(watcher)
      throw MediaError(
        .codecRefused, "motion triggers do not support the inter-frame compression of this mode",
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
        // A damaged frame counts as no motion.
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
