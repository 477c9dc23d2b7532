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
    let control = state.withLock { $0.control }
    let begins = !triggers.requiresRunningSession && !session.isRunning
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
    if let audio = triggers.audio {
      detectors.append(try session.addTrigger(audio) { [weak self] in self?.trigger($0) })
    }
    if let motion = triggers.motion {
      detectors.append(try session.addTrigger(motion) { [weak self] in self?.trigger($0) })
    }
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
}
