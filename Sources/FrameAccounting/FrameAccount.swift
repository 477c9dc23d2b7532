// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import OvercrankMediaCore

/// The account of one take: every frame period is entered once, with its outcome.
///
/// Arrived frames are entered in capture order, with their outcome. ``FrameTimeline`` decides where
/// and how many frames are missing. The times at which buffers were returned show whether the
/// driver had a free one. `expected` counts periods and the categories count frames; the ledger
/// balances when both agree.
package struct FrameAccount {
  /// The observations at the end of a take.
  package struct End: Sendable {
    /// The first frame after a take that ended at a set time, and that time.
    package var next: FrameObservation?
    package var microseconds: Int64?
    /// Frames that arrived at the end but found the record queue full.
    package var unnoted: Int64 = 0
    /// Silence before the stream was switched off, in microseconds; nil where the take ended with a
    /// frame.
    package var silence: Int64?

    package init() {}
  }

  /// The category counts so far; `stored` counts the frames handed to the writer.
  package private(set) var ledger = FrameLedger()
  /// The gaps in order, indexed by the frames handed to the writer.
  package private(set) var gaps: [FrameGap] = []
  /// Missing periods since the last frame handed to the writer.
  package private(set) var periodsSinceTaken: Int64 = 0
  /// The time from switching the stream on to the first period of the driver's count.
  package private(set) var startupDuration: Duration?

  private let switchedOn: @Sendable () -> Int64
  private var beginsWithStream: Bool
  private let trustsCounter: Bool
  private let granted: Double
  private var timeline: FrameTimeline
  private var open: Deque<FrameObservation> = []
  private var last: FrameObservation?
  private var (periodsBetween, microsecondsBetween) = (Int64(0), Int128(0))
  private var hasBegun = false
  /// The file's clock: zero at its first stored frame, stopped while the take is paused.
  package private(set) var clock = PausableClock()

  /// Makes the account of a take.
  ///
  /// - Parameters:
  ///   - frameRate: The frame rate that the driver granted.
  ///   - trustsCounter: Whether the sequence number is reliable, so that timestamps are ignored.
  ///   - beginsWithStream: Whether the take starts with the driver's first frame. False for a take
  ///     that starts later in the stream.
  ///   - switchedOn: Returns the time at which the stream was switched on, in microseconds of the
  ///     driver's clock. Called for the first frame.
  package init(
    frameRate: FrameRate, trustsCounter: Bool, beginsWithStream: Bool = true,
    switchedOn: @escaping @Sendable () -> Int64
  ) {
    self.switchedOn = switchedOn
    self.beginsWithStream = beginsWithStream
    self.trustsCounter = trustsCounter
    granted = frameRate.frameDuration.doubleValue * 1e6
    timeline = FrameTimeline(period: granted, trustsCounter: trustsCounter)
  }

  /// The frame rate that the device delivered, lost frames included; nil for fewer than two frames.
  package var measuredFrameRate: Rational? {
    guard periodsBetween > 0 else { return nil }
    return Rational(Int128(periodsBetween) * 1_000_000, over: microsecondsBetween).ifValid
  }

  /// Enters an arrived frame.
  ///
  /// Frames must come in order of arrival.
  package mutating func enter(_ frame: FrameObservation) {
    guard frame.outcome != .paused else { return pause(frame) }
    resume(atMicroseconds: frame.microseconds)
    if frame.outcome == .taken { clock.begin(atMicroseconds: frame.microseconds) }
    open.append(frame)
    timeline.add(FrameTimeline.Reading(frame))
    enterDecided()
  }

  /// Ends a pause, if there is one.
  ///
  /// Called before the first frame after the pause is entered.
  package mutating func resume(atMicroseconds time: Int64) { clock.resume(atMicroseconds: time) }

  /// Closes the account with the frames missing between the last frame and the end of the take.
  package mutating func close(_ end: End) {
    if let next = end.next { timeline.add(FrameTimeline.Reading(next)) }
    enterDecided()
    timeline.finish()
    enterDecided()
    // With a frame after the end, the timeline returns one step more than there are open frames.
    if let next = end.next, let step = lastStep, let last {
      enterMissing(before: next, after: last, Self.within(end, step - 1, last, timeline.period))
    } else if end.unnoted > 0, let last {
      ledger.expected += end.unnoted
      enter(.lostQueue, end.unnoted, due: due(1, after: last))
    } else if let silence = end.silence, let last {
      // Whether the camera produced frames during the silence is unknown.
      let periods = max(0, Int64(saturating: Double(silence) / timeline.period) - 1)
      ledger.expected += periods
      enter(.unknown, periods, due: due(1, after: last))
    }
  }

  /// Closes the account at a pause and starts a new timeline for the frames after it.
  private mutating func pause(_ frame: FrameObservation) {
    var end = End()
    end.next = frame
    close(end)
    clock.pause(atMicroseconds: frame.microseconds)
    timeline = FrameTimeline(period: granted, trustsCounter: trustsCounter)
    (last, lastStep) = (nil, nil)
    // After a pause, the driver's count no longer starts with the take.
    beginsWithStream = false
  }

  /// The number of missing frames that were due before the end of the take.
  private static func within(
    _ end: End, _ missing: Int64, _ last: FrameObservation, _ period: Double
  ) -> Int64 {
    guard let time = end.microseconds else { return max(0, missing) }
    let periods = Double(time &- last.microseconds) / period
    // A frame within 2 % of a period of the end counts as at the end, because drivers round
    // timestamps.
    return max(0, min(missing, Int64(saturating: (periods - 0.02).rounded(.up)) &- 1))
  }

  /// The step to the frame after the end of the take.
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

  /// Enters the frames lost before the first arrived frame, by the driver's sequence number.
  ///
  /// Drivers count from 0 at stream start (`v4l2_buffer`). A number too large for the elapsed time
  /// comes from a driver that starts elsewhere, and is ignored.
  private mutating func enterStart(_ frame: FrameObservation) {
    guard !hasBegun else {
      // After a pause, only frames that were seen but not recorded count as missing.
      ledger.expected += frame.unnoted
      return enter(.lostQueue, frame.unnoted, due: frame.microseconds)
    }
    hasBegun = true
    let switchedOn = switchedOn()
    let count = Int64(frame.sequence)
    let space = Double(frame.arrival &- switchedOn) / timeline.period + 2
    let lost = beginsWithStream && Double(count) <= space ? count : 0
    ledger.expected += lost
    enter(.lostStart, lost, due: 0)
    let before = Int64(saturating: (Double(lost) * timeline.period * 1_000).rounded())
    startupDuration = .microseconds(frame.microseconds &- switchedOn) - .nanoseconds(before)
  }

  /// Enters frames that never arrived, in the only order in which the causes can occur.
  private mutating func enterMissing(
    before frame: FrameObservation, after last: FrameObservation, _ count: Int64
  ) {
    guard count > 0 else { return }
    ledger.expected += count
    let unnoted = min(count, frame.unnoted)
    enter(.lostQueue, unnoted, due: due(1, after: last))
    let lost = count - unnoted
    let kernel = min(lost, overruns(before: frame, after: last, lost))
    // No frame can arrive while all buffers are full, so frames lost in the kernel come first.
    enter(.lostKernel, kernel, due: due(1 + unnoted, after: last))
    enter(.lostDevice, lost - kernel, due: due(1 + unnoted + kernel, after: last))
  }

  /// Frames that arrived while the driver had no free buffer.
  private func overruns(
    before frame: FrameObservation, after last: FrameObservation, _ count: Int64
  ) -> Int64 {
    if let known = frame.overrunsBefore { return Int64(known) }
    guard frame.oldestReturn > last.microseconds else { return 0 }
    let blocked = Double(frame.oldestReturn &- last.microseconds) / timeline.period
    // Timestamps jitter by up to 0.2 periods, so a nearly complete period counts as complete.
    return min(count, Int64(saturating: (blocked + 0.2).rounded(.down)))
  }

  private mutating func enterArrived(_ frame: FrameObservation) {
    ledger.expected += 1
    switch frame.outcome {
    case .taken:
      ledger.stored += 1
      periodsSinceTaken = 0
    case .corrupt: enter(.corrupt, 1, due: frame.microseconds)
    case .unshowable: enter(.lostStart, 1, due: frame.microseconds)
    case .refused: enter(.lostQueue, 1, due: frame.microseconds)
    case .evicted: ledger.evicted += 1
    case .paused: break
    }
  }

  /// Adds missing frames to a category and to the list of gaps.
  private mutating func enter(_ cause: FrameGap.Cause, _ count: Int64, due: Int64) {
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

  /// The due time of the period `periods` after a frame, in microseconds of the driver's clock.
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
  /// The count of the category that belongs to a loss cause.
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
