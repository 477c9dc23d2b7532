// SPDX-License-Identifier: Apache-2.0

import OvercrankCapture
import OvercrankFrameAccounting
import OvercrankLibAV
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankMovieFormat
import Synchronization

/// Records clips from a ring of frames, one for each trigger, on one thread.
///
/// Triggers may arrive late, so frames stay in the ring longer than the greatest delay. A frame
/// leaves the ring when no current or future clip can need it. The frame's outcome is then recorded
/// in the frame account.
struct TriggeredTake {
  private let configuration: TakeConfiguration
  private let triggers: TriggerSettings
  private let verification: FrameRateVerification?

  init(
    _ configuration: TakeConfiguration, _ triggers: TriggerSettings,
    verification: FrameRateVerification? = nil
  ) {
    self.configuration = configuration
    self.triggers = triggers
    self.verification = verification
  }

  var input: DeviceInput { configuration.input }
  var control: CaptureControl { configuration.control }

  /// The greatest delay of a trigger, in microseconds.
  ///
  /// An audio trigger is late because it is detected only when its whole block has arrived.
  private static let latestNews: Int64 = 250_000
  /// The number of latest triggers that a clip may mark.
  private static let markedTriggerCount = 64
  /// The number of frames that are stored for a clip before the next clip is processed.
  private static let batch = 32

  /// Whether frames depend on earlier ones, so that a clip may need hidden frames from before its
  /// start.
  private var needsKeyFrames: Bool { input.delivery.layout == .compressed(.h264) }

  /// The state of the triggered capture.
  private struct Progress {
    var clips: [Clip] = []
    /// The latest triggers, which later clips may contain too.
    var triggers: [CaptureTrigger] = []
    /// The outcome of each frame in the ring, starting with the oldest.
    var outcomes: [FrameOutcome] = []
    /// Whether each frame in the ring is a key frame.
    ///
    /// Used only for H.264.
    var keyFrames: [Bool] = []
    /// The number of frames that were stored in clips whose files were removed afterwards.
    var lostWithClips: Int64 = 0
    var account: FrameAccount
    var report: TriggeredReport
    /// The shortest history that the ring held, in microseconds.
    ///
    /// Nil if the ring always held the whole `preDuration`.
    var shortened: Int64?
    /// The error of the first clip in which no frame was stored.
    var emptyClip: MediaError?
    /// Whether the ring was full at some time.
    var isFull = false
    /// The last reported history in the ring, in microseconds.
    var reportedHistory: Int64 = 0
    /// The time at which the capture ends, in microseconds of the camera's clock; nil for no limit.
    var endTime: Int64?
  }

  /// The time before a trigger for which frames are kept, in microseconds.
  private var keptMicroseconds: Int64 {
    (try? triggers.preDuration.converted(to: 1_000_000, rounding: .towardPositiveInfinity).value)
      ?? .max / 4
  }

  /// The number of clips after which the capture ends.
  private var maximumClipCount: Int {
    triggers.repeats ? triggers.maximumClipCount ?? .max : 1
  }

  /// Creates the ring that keeps the latest frames.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  func makeRing() throws(MediaError) -> FrameQueue {
    let rate = input.negotiatedFrameRate.doubleValue
    let frameBytes = input.maximumByteCount
    // The ring holds two seconds of frames more than the triggers need, so that the disk may stall
    // for this time. Some more space is added because the oldest frames are dropped before the ring
    // is completely full. A negative `preDuration` means that clips start after their triggers. It
    // counts as zero here, because only triggers that are reported late need earlier frames then.
    let kept = max(0, triggers.preDuration.doubleValue) + Double(Self.latestNews) / 1_000_000
    let frames = (kept + 2) * rate / FrameQueue.nearlyFull + 16
    let bytes = min(frames * Double(frameBytes), 1e15)
    let limit = triggers.memoryLimit ?? RecordingMemory.availableBytes() / 2
    // A camera may exceed its nominal rate, so the ring has records for twice as many frames.
    return try FrameQueue(
      capacity: max(4 * (frameBytes + 4_096), min(Int(bytes), limit)), largestFrame: frameBytes,
      recordCount: Int(min(frames * 2, 1e7)) + 1_024)
  }

  /// Writes clips until the queue is closed and every clip is finished.
  ///
  /// - Parameters:
  ///   - queue: The ring.
  ///   - end: The end of the capture. Called after the queue is closed.
  ///   - arm: Called once the ring is full, if triggers count only from then on, with their time range
  ///     in microseconds.
  ///   - takeTriggers: Returns the new triggers. If no more triggers will come, it also returns the
  ///     reason, otherwise nil.
  ///   - notify: Called with each event, on this thread.
  /// - Returns: The report of the capture and its clips.
  func write(
    from queue: FrameQueue, end: () -> CaptureEnd, arm: (Range<Int64>) -> Void,
    takeTriggers: () -> (new: [CaptureTrigger], end: StopReason?),
    notify: (MovieFileOutput.TriggeredEvent) -> Void
  ) -> TriggeredReport {
    var state = begin(queue)
    var takesTriggers = true
    while true {
      // The queue's state and its newest frame are read before the triggers. A trigger that is not
      // read in this pass is therefore not earlier than that frame, and `evict` keeps the frames
      // that such a trigger needs.
      let isClosed = queue.isClosed
      if isClosed { configuration.audio?.end(behind: queue) }
      let newest = queue[queue.endNumber - 1]?.observation.microseconds
      if let newest { noteHistory(of: queue, newest: newest, &state, arm, notify) }
      if takesTriggers {
        let triggers = takeTriggers()
        for trigger in triggers.new { open(trigger, queue, &state, notify) }
        if let reason = triggers.end, state.clips.isEmpty { control.stop(reason) }
        if state.report.triggerCount >= maximumClipCount, state.clips.isEmpty {
          control.stop(.maxClips)
        }
      }
      // The capture ends when the queue is closed, and later triggers do not belong to it. If the
      // queue was closed at the start of this pass, no later pass takes triggers.
      takesTriggers = !isClosed
      let isIdle = advance(queue, isClosed ? end() : nil, &state, notify)
      state.report.ringPeak = max(state.report.ringPeak, queue.boundBytes)
      if isClosed, isIdle, state.clips.isEmpty { break }
      if let newest { evict(from: queue, newest: newest, &state) }
      if isIdle { queue.pause(at: queue.endNumber) }
    }
    release(before: queue.endNumber, of: queue, &state)
    return finish(end(), &state)
  }

  private func begin(_ queue: FrameQueue) -> Progress {
    var report = TriggeredReport(
      requestedFrameRate: input.requestedFrameRate,
      negotiatedFrameRate: input.negotiatedFrameRate)
    report.mode = input.modeName
    report.codec = configuration.plan.codec
    report.ringCapacity = queue.capacity
    report.frameRateVerification = verification
    return Progress(account: configuration.makeAccount(), report: report)
  }

  /// Starts a clip around a trigger.
  private func open(
    _ trigger: CaptureTrigger, _ queue: FrameQueue, _ state: inout Progress,
    _ notify: (MovieFileOutput.TriggeredEvent) -> Void
  ) {
    guard state.report.triggerCount < maximumClipCount else {
      state.report.ignoredTriggerCount += 1
      return refuse(trigger, "the capture has all its clips")
    }
    switch control.requestedStop {
    case .error, .diskFull, .minFree: return refuse(trigger, "the capture is ending")
    default: break
    }
    guard state.clips.count < TriggerQueue.capacity else {
      state.report.refusedTriggerCount += 1
      return refuse(trigger, "\(TriggerQueue.capacity) others are being recorded")
    }
    state.report.triggerCount += 1
    notify(.triggered(trigger, clip: state.report.triggerCount))
    var settings = configuration.settings
    settings.path = triggers.clipPath?(state.report.triggerCount) ?? settings.path
    let details = triggers.clipDetails?(trigger)
    if let details {
      (settings.path, settings.overwrites) = (details.path, details.overwrites)
      settings.metadata += details.metadata
    }
    let file: MovieFile
    do throws(CallFailure) {
      file = try MovieFile(creating: settings.path, overwrites: settings.overwrites)
    } catch {
      // If the file of one clip cannot be created, the other clips continue, because a later
      // trigger may succeed.
      state.report.problem = state.report.problem ?? MediaError(creating: error)
      state.report.warnings.append("\(settings.path) was not written: \(error.reason)")
      if !triggers.repeats { control.stop(.error) }
      triggers.clipDidEnd?(trigger, .failure(MediaError(creating: error)))
      return
    }
    var clipConfiguration = configuration
    clipConfiguration.settings = settings
    clipConfiguration.beginsWithStream = false
    clipConfiguration.trigger = trigger
    var writer = TakeFileWriter(clipConfiguration, into: file)
    if let details {
      writer.add([
        PendingValue(
          position: .captured(trigger.microseconds), key: details.markKey, value: .integer(0))
      ])
    }
    let clip = Clip(
      of: trigger, range: Self.range(of: trigger, triggers), writer: writer, path: settings.path,
      from: queue, needsKeyFrames: needsKeyFrames)
    // The photo of a Live Photo is marked by a value of its own.
    if details == nil { mark(trigger, in: clip, &state) }
    state.clips.append(clip)
  }

  /// Marks a trigger in its clip and in the other clips that contain it, and earlier triggers in this
  /// clip.
  private func mark(_ trigger: CaptureTrigger, in clip: Clip, _ state: inout Progress) {
    for other in state.clips { other.mark(trigger) }
    state.triggers.append(trigger)
    if state.triggers.count > Self.markedTriggerCount { state.triggers.removeFirst() }
    for known in state.triggers { clip.mark(known) }
  }

  /// The time range of a clip's frames in microseconds.
  ///
  /// Frame times are whole microseconds. Rounding both ends up therefore does not change which
  /// frames are in the half-open range.
  static func range(of trigger: CaptureTrigger, _ settings: TriggerSettings) -> Range<Int64> {
    func time(_ offset: MediaTime, negated: Bool) -> Int64 {
      let rounding: TimeRounding = negated ? .towardNegativeInfinity : .towardPositiveInfinity
      let value = (try? offset.converted(to: 1_000_000, rounding: rounding).value) ?? .max / 4
      return trigger.microseconds &+ (negated ? -value : value)
    }
    let start = time(settings.preDuration, negated: true)
    return start..<max(start, time(settings.postDuration, negated: false))
  }

  /// Stores the available frames of each clip, and finishes complete clips.
  ///
  /// - Returns: True if there was nothing to do, false if a clip made progress.
  private func advance(
    _ queue: FrameQueue, _ end: CaptureEnd?, _ state: inout Progress,
    _ notify: (MovieFileOutput.TriggeredEvent) -> Void
  ) -> Bool {
    var isIdle = true
    noteArrivals(queue, &state)
    let first = queue.startNumber
    let known = first + state.outcomes.count
    for clip in state.clips {
      let numbers = clip.advance(queue, before: known, atMost: Self.batch) { number, outcome in
        // A frame counts as taken once it is in at least one file.
        if state.outcomes[number - first] != .taken { state.outcomes[number - first] = outcome }
      }
      if !numbers.isEmpty {
        isIdle = false
        if let progress = clip.progress(queueFill: queue.fillLevel) { notify(.progress(progress)) }
      }
      let isEnded = end != nil && clip.number >= queue.endNumber
      guard clip.isOver || isEnded else { continue }
      isIdle = false
      if let reason = clip.reasonToEndAll { control.stop(reason) }
      state.clips.removeAll { $0 === clip }
      finish(clip, end, &state, notify)
    }
    return isIdle
  }

  private func finish(
    _ clip: Clip, _ end: CaptureEnd?, _ state: inout Progress,
    _ notify: (MovieFileOutput.TriggeredEvent) -> Void
  ) {
    let storedCount = clip.storedCount
    triggers.clipDidRecord?(clip.trigger)
    do {
      var report = try clip.finish(end, verification)
      if let warning = preRollWarning(report, isRingTooSmall: state.shortened != nil) {
        report.warnings.append(warning)
      }
      state.report.clips.append(report)
      triggers.clipDidEnd?(clip.trigger, .success(report))
      if state.report.problem == nil { state.report.problem = report.problem }
      notify(.finished(report))
    } catch {
      state.lostWithClips += storedCount
      triggers.clipDidEnd?(clip.trigger, .failure(error))
      state.report.warnings.append("\(clip.path) was not written: \(error)")
      // If the capture records a clip for every trigger, a clip without frames is not an error of
      // the whole capture.
      if triggers.repeats, [.nothingStored, .cancelled].contains(error.code) {
        state.emptyClip = state.emptyClip ?? error
      } else {
        state.report.problem = state.report.problem ?? error
      }
    }
    if !triggers.repeats { control.stop(.duration) }
  }

  /// The warning if a clip contains less time before its trigger than requested, otherwise nil.
  private func preRollWarning(_ clip: RecordingReport, isRingTooSmall: Bool) -> String? {
    guard let mark = clip.trigger,
      let requested = try? triggers.preDuration.converted(to: 1_000_000_000, rounding: .towardZero),
      let period = try? input.negotiatedFrameRate.frameDuration
        .converted(to: 1_000_000_000, rounding: .towardPositiveInfinity)
    else { return nil }
    // Frame times jitter, so the clip may begin up to two periods late without a warning.
    let held = mark.time.wholeNanoseconds
    guard held < requested.value - 2 * period.value else { return nil }
    return "\(clip.path) holds \(max(0, held) / 1_000_000) ms from before its trigger "
      + "instead of \(requested.value / 1_000_000) ms: "
      + (isRingTooSmall ? "the ring is too small" : "the camera had not run for longer")
  }

  private func finish(_ end: CaptureEnd, _ state: inout Progress) -> TriggeredReport {
    state.account.close(end.frames)
    var report = state.report
    report.ledger = state.account.ledger
    report.gaps = state.account.gaps
    report.measuredFrameRate = state.account.measuredFrameRate
    report.timestampQuantum = state.account.timestampQuantum
    report.startupDuration = state.account.startupDuration
    report.stoppedBy = end.stopReason
    // The frames that a clip's file lacks after a write error were counted as stored. They now
    // count as lost. If clips overlap, some of these frames may be in another clip, so the number
    // is an upper limit.
    let lost = min(
      report.ledger.stored,
      report.clips.reduce(state.lostWithClips) { $0 + $1.ledger.lostWriter })
    report.ledger.stored -= lost
    report.ledger.lostWriter += lost
    if let error = end.error, report.problem == nil {
      report.problem = error
    }
    if report.clips.isEmpty { report.problem = report.problem ?? state.emptyClip }
    if report.problem?.code == .diskFull { report.stoppedBy = .diskFull }
    if let held = state.shortened {
      report.warnings.append(
        "the ring of \(report.ringCapacity / 1_048_576) MiB held only the last \(held / 1_000) ms "
          + "instead of \(Int(triggers.preDuration.doubleValue * 1_000)) ms")
    }
    return report
  }

  // MARK: The ring

  /// Reports how much time the ring holds, until it is full, and ends a capture whose duration counts
  /// from then on.
  private func noteHistory(
    of queue: FrameQueue, newest: Int64, _ state: inout Progress, _ arm: (Range<Int64>) -> Void,
    _ notify: (MovieFileOutput.TriggeredEvent) -> Void
  ) {
    if let end = state.endTime, newest >= end { control.stop(.duration) }
    guard !state.isFull, let oldest = queue[queue.startNumber]?.observation.microseconds else {
      return
    }
    let (held, kept) = (newest &- oldest, max(0, keptMicroseconds))
    state.isFull = held >= kept || state.shortened != nil
    guard state.isFull || held >= state.reportedHistory + max(50_000, kept / 50) else { return }
    state.reportedHistory = held
    notify(.preRoll(duration: MediaTime(microseconds: min(held, kept)), isFull: state.isFull))
    guard state.isFull, triggers.armsWhenFull else { return }
    state.endTime = configuration.settings.limit.duration.map {
      newest &+ Int64(saturating: $0.doubleValue * 1_000_000)
    }
    arm(newest..<max(newest, state.endTime ?? .max))
  }

  /// Reports a trigger for which no clip is recorded.
  private func refuse(_ trigger: CaptureTrigger, _ reason: String) {
    triggers.clipDidEnd?(
      trigger, .failure(MediaError(.nothingStored, "no clip was recorded: \(reason)")))
  }

  /// Records the outcome of the frames that have arrived since the last call.
  ///
  /// A frame counts as evicted until a clip contains it.
  private func noteArrivals(_ queue: FrameQueue, _ state: inout Progress) {
    var number = queue.startNumber + state.outcomes.count
    while let frame = queue[number] {
      let outcome = frame.observation.outcome
      state.outcomes.append(outcome == .taken ? .evicted : outcome)
      if needsKeyFrames { state.keyFrames.append(frame.isKeyFrame) }
      number += 1
    }
  }

  /// Releases the frames that no current or future clip needs.
  private func evict(from queue: FrameQueue, newest: Int64, _ state: inout Progress) {
    let limit = min(
      state.clips.map(\.number).min() ?? queue.endNumber,
      queue.startNumber + state.outcomes.count)
    let kept = keptMicroseconds
    let oldest = newest &- kept &- Self.latestNews
    let first = queue.startNumber
    var number = first
    var keyIndex = number
    while number < limit, let frame = queue[number], frame.observation.microseconds < oldest {
      if needsKeyFrames, state.keyFrames[number - first] { keyIndex = number }
      number += 1
    }
    if needsKeyFrames {
      let isKeyFrame =
        state.keyFrames.indices.contains(number - first)
        && state.keyFrames[number - first]
      number = isKeyFrame ? number : keyIndex
    }
    release(before: number, of: queue, &state)
    // If the ring is nearly full, the oldest frames are dropped, because otherwise the next
    // arriving frames would be lost.
    while number < limit, queue.isNearlyFull, !queue.isReleasePending, let frame = queue[number] {
      let held = newest &- frame.observation.microseconds
      if held < kept { state.shortened = min(state.shortened ?? .max, held) }
      number += 1
      release(before: number, of: queue, &state)
    }
  }

  private func release(before end: Int, of queue: FrameQueue, _ state: inout Progress) {
    let first = queue.startNumber
    noteArrivals(queue, &state)
    guard end > first else { return }
    for number in first..<end {
      guard let frame = queue[number] else { continue }
      var observation = frame.observation
      observation.outcome = state.outcomes[number - first]
      state.account.record(observation)
    }
    state.outcomes.removeFirst(end - first)
    if needsKeyFrames { state.keyFrames.removeFirst(end - first) }
    queue.release(before: end)
  }
}
