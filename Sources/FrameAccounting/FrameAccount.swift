// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import OvercrankMediaCore

/// The account of one take, which records the outcome of every frame period once.
///
/// Arrived frames are entered in capture order, each with its outcome. ``FrameTimeline`` determines
/// how many frames are missing between two arrived frames. The times at which the program returned
/// buffers show whether the driver had a free buffer. In the ledger, `expected` counts periods, and
/// the categories count frames. The ledger balances if both counts agree.
package struct FrameAccount {
  /// The observations of the capture thread at the end of a take.
  package struct End: Sendable {
    /// The first frame that arrived but does not belong to the take, or nil if no such frame
    /// arrived.
    ///
    /// Such a frame came after the end time or at a pause, or did not fit in a full queue.
    package var next: FrameObservation?
    /// The end time of a take that reached its duration limit, otherwise nil.
    ///
    /// In microseconds of the driver's continuous timestamps.
    package var microseconds: Int64?
    /// The number of frames that arrived just before the end but could not be recorded, because the
    /// recording queue was full.
    package var unnoted: Int64 = 0
    /// The time from the last frame until the stream was switched off, in microseconds.
    ///
    /// Nil if the take ended with a frame.
    package var silence: Int64?

    package init() {}
  }

  /// The counts of frames and frame periods by category so far.
  ///
  /// `stored` counts the frames handed to the writer.
  package private(set) var ledger = FrameLedger()
  /// The gaps between stored frames so far, in order.
  ///
  /// `afterIndex` of a gap counts the frames that were handed to the writer.
  package private(set) var gaps: [FrameGap] = []
  /// The number of frame periods entered as missing since the last frame that was handed to the
  /// writer.
  package private(set) var periodsSinceTaken: Int64 = 0
  /// The time from the start of the stream to its first frame, even if that frame was lost.
  ///
  /// If the take begins later in the stream, this is the time from the start of the stream to the
  /// first frame of the take. Nil before a frame was entered.
  package private(set) var startupDuration: Duration?

  private let switchedOn: @Sendable () -> Int64
  private var beginsWithStream: Bool
  private let trustsCounter: Bool
  /// The frame duration that the driver granted, in microseconds.
  private var granted: Double
  /// Whether the driver granted several frame rates, one after another.
  private var hasSeveralRates = false
  private var timeline: FrameTimeline
  private var open: Deque<FrameObservation> = []
  private var last: FrameObservation?
  /// The times of the first arrived and of the first taken frame, in microseconds of the driver's
  /// clock.
  private var (first, firstTaken): (Int64?, Int64?)
  /// The number of frame periods entered after the last arrived frame, when the account was closed.
  private var periodsSinceLast: Int64 = 0
  private var (periodsBetween, microsecondsBetween) = (Int64(0), Int128(0))
  private var hasBegun = false
  /// The step of timestamps before the last pause or reconnection, in microseconds.
  private var quantumBefore: Double?
  /// The time of the camera's pauses before the last pause or reconnection of the take, in
  /// microseconds.
  private var pausedBefore: Int64 = 0
  /// The clock for the times in the file: zero at the first stored frame, and stopped during
  /// pauses.
  package private(set) var clock = PausableClock()

  /// Makes the empty account of a take.
  ///
  /// - Parameters:
  ///   - frameRate: The frame rate that the driver granted.
  ///   - trustsCounter: Whether the sequence number is reliable. If true, timestamps are ignored.
  ///   - beginsWithStream: Whether the take starts with the driver's first frame. False if the take
  ///     starts later in the stream.
  ///   - switchedOn: Returns the time at which the stream was switched on, in microseconds of the
  ///     driver's clock. Called once, for the first frame.
  package init(
    frameRate: FrameRate, trustsCounter: Bool, beginsWithStream: Bool = true,
    switchedOn: @escaping @Sendable () -> Int64
  ) {
    (self.switchedOn, self.beginsWithStream) = (switchedOn, beginsWithStream)
    self.trustsCounter = trustsCounter
    granted = Self.period(of: frameRate)
    timeline = FrameTimeline(period: granted, trustsCounter: trustsCounter)
  }

  private static func period(of frameRate: FrameRate) -> Double {
    frameRate.frameDuration.doubleValue * 1e6
  }

  /// The frame rate that the device delivered, including lost frames.
  ///
  /// Nil for fewer than two frames, and if the camera was set to another rate.
  package var measuredFrameRate: Rational? {
    guard periodsBetween > 0, !hasSeveralRates else { return nil }
    // The camera made no frames in its pauses, and lost none.
    let elapsed = microsecondsBetween - Int128(pausedBefore &+ timeline.pausedMicroseconds)
    return Rational(Int128(periodsBetween) * 1_000_000, over: elapsed).ifValid
  }

  /// The step of the driver's timestamps, or nil if none is apparent.
  ///
  /// The step is 4 ms if the driver takes the time of a frame when a transfer of 4 ms completes.
  package var timestampQuantum: Duration? {
    (timeline.quantum ?? quantumBefore).map {
      .nanoseconds(Int64(saturating: ($0 * 1_000).rounded()))
    }
  }

  /// Records an arrived frame.
  ///
  /// Frames must come in order of arrival.
  package mutating func record(_ frame: FrameObservation) {
    guard frame.outcome != .paused else { return pause(frame) }
    resume(atMicroseconds: frame.microseconds)
    first = first ?? frame.microseconds
    if frame.outcome == .taken {
      firstTaken = firstTaken ?? frame.microseconds
      clock.begin(atMicroseconds: frame.microseconds)
    }
    open.append(frame)
    timeline.add(FrameTimeline.Reading(frame))
    enterDecided()
  }

  /// Ends a pause, or does nothing if the take is not paused.
  ///
  /// Call this before the first frame after the pause is recorded.
  package mutating func resume(atMicroseconds time: Int64) { clock.resume(atMicroseconds: time) }

  /// Closes the account, and enters the frames that are missing between the last frame and the end
  /// of the take.
  package mutating func close(_ end: End) {
    if let next = end.next { timeline.add(FrameTimeline.Reading(next)) }
    enterDecided()
    timeline.finish()
    enterDecided()
    let decided = ledger.expected
    // The frame after the end was added to the timeline, but not to `open`, the frames whose steps
    // are undecided. The timeline therefore returns one more step than `open` has frames. This last
    // step leads to the frame after the end.
    if let next = end.next, let step = lastStep, let last {
      enterMissing(before: next, after: last, Self.within(end, step - 1, last, timeline.period))
    } else if end.unnoted > 0, let last {
      ledger.expected += end.unnoted
      add(.lostQueue, end.unnoted, due: due(1, after: last))
    } else {
      addSilence(end)
    }
    periodsSinceLast = ledger.expected - decided
  }

  /// Enters the frame periods from the last frame until the stream was switched off.
  ///
  /// The camera may or may not have produced frames in them, so their outcome is unknown.
  package mutating func addSilence(_ end: End) {
    guard end.next == nil, end.unnoted == 0, let silence = end.silence, let last else { return }
    let periods = max(0, Int64(saturating: Double(silence) / timeline.period) - 1)
    ledger.expected += periods
    add(.unknown, periods, due: due(1, after: last))
  }

  /// Continues this closed account with the closed account of the take's next file.
  package mutating func append(_ next: FrameAccount) {
    guard let first = next.first else { return }
    if let lastStep, let last {
      periodsBetween += lastStep
      microsecondsBetween += Int128(first) - Int128(last.microseconds)
    }
    let start = clock.append(next.clock, beginningAtMicroseconds: next.firstTaken ?? first)
    for gap in next.gaps {
      let after = gap.afterIndex + ledger.stored
      if let last = gaps.last, last.afterIndex == after, last.cause == gap.cause {
        gaps[gaps.count - 1].count += gap.count
      } else {
        let time = MediaTime(microseconds: start &+ gap.time.wholeMicroseconds)
        gaps.append(FrameGap(afterIndex: after, count: gap.count, time: time, cause: gap.cause))
      }
    }
    periodsSinceTaken =
      next.periodsSinceTaken + (next.ledger.stored == 0 ? periodsSinceTaken : 0)
    ledger += next.ledger
    startupDuration = startupDuration ?? next.startupDuration
    periodsBetween += next.periodsBetween
    microsecondsBetween += next.microsecondsBetween
    startTimeline()
    quantumBefore = next.quantumBefore ?? quantumBefore
    hasSeveralRates = hasSeveralRates || next.hasSeveralRates || granted != next.granted
    granted = next.granted
    pausedBefore &+= next.pausedBefore
    timeline = next.timeline
    (last, lastStep, periodsSinceLast) = (next.last, next.lastStep, next.periodsSinceLast)
  }

  /// Enters all frames up to a pause, and starts a new timeline for the frames after the pause.
  private mutating func pause(_ frame: FrameObservation) {
    var end = End()
    end.next = frame
    close(end)
    clock.pause(atMicroseconds: frame.microseconds)
    startTimeline()
  }

  /// Enters the frames that were lost while the device was gone, up to the time of the next frame.
  ///
  /// The account is closed, and continues with ``append(_:)``.
  package mutating func reconnect(atMicroseconds time: Int64) {
    if let last {
      let periods = Double(time &- last.microseconds) / timeline.period
      let count = max(0, Int64(saturating: periods.rounded()) - 1 - periodsSinceLast)
      ledger.expected += count
      add(.lostDevice, count, due: due(1, after: last))
    }
    startTimeline()
  }

  /// Continues with the first frame of another stream of the camera, which may have another rate.
  ///
  /// The frames that were lost between the streams are entered with the old rate. The new stream counts
  /// its frames anew. The frames before this one that a full queue has rejected are entered too.
  package mutating func restart(with frame: FrameObservation, frameRate: FrameRate) {
    var end = End()
    end.unnoted = frame.unnoted
    close(end)
    let period = Self.period(of: frameRate)
    hasSeveralRates = hasSeveralRates || period != granted
    granted = period
    reconnect(atMicroseconds: frame.microseconds)
  }

  private mutating func startTimeline() {
    quantumBefore = timeline.quantum ?? quantumBefore
    pausedBefore &+= timeline.pausedMicroseconds
    timeline = FrameTimeline(period: granted, trustsCounter: trustsCounter)
    (last, lastStep) = (nil, nil)
    // The driver counts the frames of a pause too, and starts to count anew after a reconnection.
    // In both cases, the next sequence number does not show how many frames were lost.
    beginsWithStream = false
  }

  /// The number of missing frames that were due before the end of the take, where `missing` frames
  /// are missing before the first frame after the end.
  private static func within(
    _ end: End, _ missing: Int64, _ last: FrameObservation, _ period: Double
  ) -> Int64 {
    guard let time = end.microseconds else { return max(0, missing) }
    let periods = Double(time &- last.microseconds) / period
    // Drivers round timestamps, so a frame due less than 2 % of a period before the end counts as
    // due at the end, and is not missing.
    return max(0, min(missing, Int64(saturating: (periods - 0.02).rounded(.up)) &- 1))
  }

  /// The number of frame periods from the last entered frame to the first frame after the end of
  /// the take.
  ///
  /// Nil until the timeline has determined the number.
  private var lastStep: Int64?

  private mutating func enterDecided() {
    for step in timeline.steps {
      guard !open.isEmpty else {
        lastStep = step
        break
      }
      let frame = open.removeFirst()
      if let last {
        periodsBetween += step
        microsecondsBetween += Int128(frame.microseconds) - Int128(last.microseconds)
        enterMissing(before: frame, after: last, step - 1)
      } else {
        enterStart(frame)
      }
      enterArrived(frame)
      last = frame
    }
  }

  /// Enters the frames lost before the first arrived frame, according to the driver's sequence
  /// number.
  ///
  /// Drivers count from 0 at the start of the stream (`v4l2_buffer`). If the sequence number is too
  /// large for the time since the start, the driver does not count from 0, so the number is
  /// ignored.
  private mutating func enterStart(_ frame: FrameObservation) {
    guard !hasBegun else {
      // The driver also counts the frames of a pause. The sequence number after a pause therefore
      // does not show which frames are missing. Only frames that arrived but could not be recorded
      // are entered as lost.
      ledger.expected += frame.unnoted
      return add(.lostQueue, frame.unnoted, due: frame.microseconds)
    }
    hasBegun = true
    let switchedOn = switchedOn()
    let count = Int64(frame.sequence)
    let space = Double(frame.arrival &- switchedOn) / timeline.period + 2
    let lost = beginsWithStream && Double(count) <= space ? count : 0
    ledger.expected += lost
    add(.lostStart, lost, due: 0)
    let before = Int64(saturating: (Double(lost) * timeline.period * 1_000).rounded())
    startupDuration = .microseconds(frame.microseconds &- switchedOn) - .nanoseconds(before)
  }

  /// Enters frames that are missing between two frames, split by cause.
  ///
  /// The earliest frames are assigned to a full recording queue, the next to a driver without a
  /// free buffer, and the last to the device.
  private mutating func enterMissing(
    before frame: FrameObservation, after last: FrameObservation, _ count: Int64
  ) {
    guard count > 0 else { return }
    ledger.expected += count
    let unnoted = min(count, frame.unnoted)
    add(.lostQueue, unnoted, due: due(1, after: last))
    let lost = count - unnoted
    let kernel = min(lost, overruns(before: frame, after: last, lost))
    // The driver had no free buffer from the last arrived frame until a buffer was requeued. The
    // frames lost in that time are therefore earlier than those lost in the device.
    add(.lostKernel, kernel, due: due(1 + unnoted, after: last))
    add(.lostDevice, lost - kernel, due: due(1 + unnoted + kernel, after: last))
  }

  /// The number of missing frames before a frame that were lost while the driver had no free
  /// buffer.
  private func overruns(
    before frame: FrameObservation, after last: FrameObservation, _ count: Int64
  ) -> Int64 {
    if let known = frame.overrunsBefore { return Int64(known) }
    guard frame.oldestReturn > last.microseconds else { return 0 }
    let blocked = Double(frame.oldestReturn &- last.microseconds) / timeline.period
    // Timestamps jitter by up to 0.2 periods, so already 0.8 of a period without a free buffer
    // counts as one lost frame.
    return min(count, Int64(saturating: (blocked + 0.2).rounded(.down)))
  }

  private mutating func enterArrived(_ frame: FrameObservation) {
    ledger.expected += 1
    switch frame.outcome {
    case .taken:
      ledger.stored += 1
      periodsSinceTaken = 0
    case .corrupt: add(.corrupt, 1, due: frame.microseconds)
    case .unshowable: add(.lostStart, 1, due: frame.microseconds)
    case .refused: add(.lostQueue, 1, due: frame.microseconds)
    case .evicted: ledger.evicted += 1
    case .paused: break
    }
  }

  /// Adds missing frames to the count of their cause and to the list of gaps.
  private mutating func add(_ cause: FrameGap.Cause, _ count: Int64, due: Int64) {
    guard count > 0 else { return }
    ledger[cause] += count
    periodsSinceTaken += count
    let after = ledger.stored - 1
    if let last = gaps.last, last.afterIndex == after, last.cause == cause {
      gaps[gaps.count - 1].count += count
      return
    }
    let time = MediaTime(microseconds: max(0, clock.time(ofMicroseconds: due)))
    gaps.append(
      FrameGap(afterIndex: after, count: count, time: time, cause: cause))
  }

  /// The time at which a missing frame was due, a number of frame periods after `frame`, in
  /// microseconds of the driver's clock.
  private func due(_ periods: Int64, after frame: FrameObservation) -> Int64 {
    frame.microseconds &+ Int64(saturating: (Double(periods) * timeline.period).rounded())
  }
}

extension FrameTimeline.Reading {
  fileprivate init(_ frame: FrameObservation) {
    self.init(
      sequence: frame.sequence, microseconds: frame.microseconds,
      isClockJump: frame.isClockJump, minimumStep: frame.unnoted + 1)
  }
}

extension FrameLedger {
  /// The count of lost frames in the ledger for a cause of loss.
  fileprivate subscript(cause: FrameGap.Cause) -> Int64 {
    get {
      switch cause {
      case .corrupt: corrupt
      case .lostStart: lostStart
      case .lostDevice: lostDevice
      case .lostKernel: lostKernel
      case .lostQueue: lostQueue
      case .lostWriter: lostWriter
      case .unknown: unknown
      }
    }
    set {
      switch cause {
      case .corrupt: corrupt = newValue
      case .lostStart: lostStart = newValue
      case .lostDevice: lostDevice = newValue
      case .lostKernel: lostKernel = newValue
      case .lostQueue: lostQueue = newValue
      case .lostWriter: lostWriter = newValue
      case .unknown: unknown = newValue
      }
    }
  }
}
