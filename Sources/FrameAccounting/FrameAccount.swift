// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import OvercrankMediaCore

/// Accounts for a take: each frame period is entered once, under what became of it.
///
/// Frames are entered in the order of capture, with what became of those that arrived. Where
/// frames are missing between them, and how many, ``FrameTimeline`` decides; when buffers were
/// given back tells whether the driver had nowhere to put them. `expected` grows by periods, the
/// categories by frames: that the two agree is what the ledger proves.
package struct FrameAccount {
  /// What is known of the frames at the end of a take.
  package struct End: Sendable {
    /// The first frame after a take that ended at a time, and that time.
    package var next: FrameObservation?
    package var microseconds: Int64?
    /// Frames that arrived at the very end, for which not even a note found room.
    package var unnoted: Int64 = 0
    /// How long the device had been silent when the stream was switched off, in microseconds;
    /// nil where the take ended with a frame.
    package var silence: Int64?

    package init() {}
  }

  /// The categories so far; `stored` is what the writer took.
  package private(set) var ledger = FrameLedger()
  /// Where frames are missing, in order; indices are those of the frames taken.
  package private(set) var gaps: [FrameGap] = []
  /// Periods after the last frame taken, all of them missing.
  package private(set) var periodsSinceTaken: Int64 = 0
  /// From switching the stream on to the first period that the driver claims.
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
  /// The take's own time: zero at its first frame taken, still while it is paused.
  package private(set) var clock = PausableClock()

  /// Opens an account.
  ///
  /// - Parameters:
  ///   - frameRate: The rate that the driver granted.
  ///   - trustsCounter: Whether the sequence is known to be right, and time is not asked.
  ///   - beginsWithStream: Whether the driver's first frame is the take's; a take that begins
  ///     while the stream is on misses none of those before.
  ///   - switchedOn: Tells when the stream was switched on, in microseconds of the driver's
  ///     clock; asked when the first frame is entered.
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

  /// The rate that the device delivered, losses included; nil for fewer than two frames.
  package var measuredFrameRate: Rational? {
    guard periodsBetween > 0 else { return nil }
    return Rational(Int128(periodsBetween) * 1_000_000, over: microsecondsBetween).ifValid
  }

  /// Enters a frame that arrived, after all that arrived before it.
  package mutating func enter(_ frame: FrameObservation) {
    guard frame.outcome != .paused else { return pause(frame) }
    resume(atMicroseconds: frame.microseconds)
    if frame.outcome == .taken { clock.begin(atMicroseconds: frame.microseconds) }
    open.append(frame)
    timeline.add(FrameTimeline.Reading(frame))
    enterDecided()
  }

  /// Goes on after a pause, if there is one, before the first frame behind it is entered.
  package mutating func resume(atMicroseconds time: Int64) { clock.resume(atMicroseconds: time) }

  /// Closes the account: what is missing between the last frame and the end of the take.
  package mutating func close(_ end: End) {
    if let next = end.next { timeline.add(FrameTimeline.Reading(next)) }
    enterDecided()
    timeline.finish()
    enterDecided()
    // The frame after the end, if there is one, is the one step more than there are frames.
    if let next = end.next, let step = lastStep, let last {
      enterMissing(before: next, after: last, Self.within(end, step - 1, last, timeline.period))
    } else if end.unnoted > 0, let last {
      ledger.expected += end.unnoted
      enter(.lostQueue, end.unnoted, due: due(1, after: last))
    } else if let silence = end.silence, let last {
      // Nobody knows whether the camera made any.
      let periods = max(0, Int64(saturating: Double(silence) / timeline.period) - 1)
      ledger.expected += periods
      enter(.unknown, periods, due: due(1, after: last))
    }
  }

  /// Closes the account of what came before a pause; what comes behind it begins anew.
  private mutating func pause(_ frame: FrameObservation) {
    var end = End()
    end.next = frame
    close(end)
    clock.pause(atMicroseconds: frame.microseconds)
    timeline = FrameTimeline(period: granted, trustsCounter: trustsCounter)
    (last, lastStep) = (nil, nil)
    // What the driver counts from now on began before.
    beginsWithStream = false
  }

  /// How many of the missing were due before the end.
  private static func within(
    _ end: End, _ missing: Int64, _ last: FrameObservation, _ period: Double
  ) -> Int64 {
    guard let time = end.microseconds else { return max(0, missing) }
    let periods = Double(time &- last.microseconds) / period
    // Within a fiftieth of a period the end falls on a frame, whatever the driver rounded.
    return max(0, min(missing, Int64(saturating: (periods - 0.02).rounded(.up)) &- 1))
  }

  /// The step to the frame after the end.
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

  /// Enters the frames before the first, by the driver's own count.
  ///
  /// Drivers count from 0 when the stream is switched on (`v4l2_buffer`). A number that the time
  /// since then has no room for is of a driver that does not.
  private mutating func enterStart(_ frame: FrameObservation) {
    guard !hasBegun else {
      // Behind a pause, what is known to be missing is what was seen.
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

  /// Enters frames that never arrived, in the order in which they can have been lost.
  private mutating func enterMissing(
    before frame: FrameObservation, after last: FrameObservation, _ count: Int64
  ) {
    guard count > 0 else { return }
    ledger.expected += count
    let unnoted = min(count, frame.unnoted)
    enter(.lostQueue, unnoted, due: due(1, after: last))
    let lost = count - unnoted
    let kernel = min(lost, overruns(before: frame, after: last, lost))
    // While all buffers were full none could arrive, so those come first.
    enter(.lostKernel, kernel, due: due(1 + unnoted, after: last))
    enter(.lostDevice, lost - kernel, due: due(1 + unnoted + kernel, after: last))
  }

  /// How many frames came while the driver had no buffer: all were full or in our hands.
  private func overruns(
    before frame: FrameObservation, after last: FrameObservation, _ count: Int64
  ) -> Int64 {
    if let known = frame.overrunsBefore { return Int64(known) }
    guard frame.oldestReturn > last.microseconds else { return 0 }
    let blocked = Double(frame.oldestReturn &- last.microseconds) / timeline.period
    // The frame's own time jitters, so what ended just before a period was due did not end in time.
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

  /// Enters missing frames in a category and in the list of gaps.
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

  /// When a period after a frame was due, in microseconds of the driver's clock.
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
  /// The category of a cause.
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
