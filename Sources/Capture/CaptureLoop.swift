// SPDX-License-Identifier: Apache-2.0
public import MediaTiming
package import Synchronization

/// When a take is over by itself.
public struct CaptureLimit: Hashable, Sendable {
  /// The take ends at the first frame this long after its first frame, or later.
  public var duration: MediaTime?
  /// The take ends when this many frames are in hand.
  public var frameCount: Int64?

  /// Makes a limit; without any, the take goes on until it is stopped.
  public init(duration: MediaTime? = nil, frameCount: Int64? = nil) {
    self.duration = duration
    self.frameCount = frameCount
  }
}

/// Why a capture ended.
public enum StopReason: String, Hashable, Sendable {
  /// The duration asked for is reached, or a file camera was played to its end.
  case duration
  /// The number of frames asked for is reached.
  case frames
  /// Someone asked for it: Ctrl-C, or a call.
  case signal
  /// The file has the size asked for.
  case maxSize = "max_size"
  /// The disk has no more than the free space asked for.
  case minFree = "min_free"
  /// The disk is full.
  case diskFull = "disk_full"
  /// The device is gone.
  case deviceLost = "device_lost"
  /// Something else failed; the error says what.
  case error
}

/// What the capture thread knows when it is done.
package struct CaptureSummary: Sendable {
  /// Frame periods of the take, by the driver's own numbers.
  package var expected: Int64 = 0
  /// Missing after the last frame queued.
  package var trailing = MissingFrames()
  /// From switching the stream on to the first period that the driver claims.
  package var startupNanoseconds: Int64?
  /// The first and the last frame queued or corrupt, and the periods between them.
  package var firstMicroseconds: Int64?
  package var lastMicroseconds: Int64?
  package var periodsBetween: Int64 = 0
  package var stopReason = StopReason.signal
  package var error: CaptureError?
}

/// What others may read of a running capture, and how they end it.
package final class CaptureControl: Sendable {
  /// Frames that reached the queue so far.
  package let queued = Atomic<Int64>(0)
  /// Frames missing so far, of any cause.
  package let missing = Atomic<Int64>(0)
  private let stopRequest = Mutex<StopReason?>(nil)
  private let isStopRequested = Atomic<Bool>(false)

  package init() {}

  /// Ends the capture within a tenth of a second; the first reason given stands.
  package func stop(_ reason: StopReason) {
    stopRequest.withLock { if $0 == nil { $0 = reason } }
    isStopRequested.store(true, ordering: .releasing)
  }

  /// The reason to stop for, or nil; takes no lock until there is one.
  package var requestedStop: StopReason? {
    guard isStopRequested.load(ordering: .acquiring) else { return nil }
    return stopRequest.withLock { $0 }
  }
}

/// The work of the capture thread: dequeue, hand over, requeue; nothing else, and no waiting
/// for anyone but the driver.
struct CaptureLoop {
  let driver: any FrameDriver
  let frameRate: FrameRate
  /// Bytes of a whole uncompressed frame; nil where frames are compressed.
  let expectedByteCount: Int?
  let limit: CaptureLimit
  let queue: FrameQueue
  let control: CaptureControl

  private var summary = CaptureSummary()
  private var judge = FrameJudge()
  private var pending = MissingFrames()
  private var pendingPeriods: Int64 = 0
  private var queuedCount: Int64 = 0
  /// The time of the first frame queued: the take's zero.
  private var origin: Int64?
  private var lastDequeue: Int64 = 0

  init(
    driver: any FrameDriver, frameRate: FrameRate, expectedByteCount: Int?, limit: CaptureLimit,
    queue: FrameQueue, control: CaptureControl
  ) {
    self.driver = driver
    self.frameRate = frameRate
    self.expectedByteCount = expectedByteCount
    self.limit = limit
    self.queue = queue
    self.control = control
  }

  /// Captures until a limit, a request, the source's end or a failure, then stops the driver.
  mutating func run() -> CaptureSummary {
    let switchedOn = CaptureClock.nanoseconds()
    do throws(CaptureError) {
      try driver.start()
      summary.stopReason = try captureFrames()
    } catch {
      summary.error = error
      summary.stopReason = error.code == .deviceLost ? .deviceLost : .error
    }
    driver.stop()
    summary.expected = judge.periods + periodsAfterLast
    summary.trailing = pending
    if let first = summary.firstMicroseconds {
      let before = Double(firstPeriod) * frameRate.frameDuration.doubleValue * 1e9
      summary.startupNanoseconds = (first &* 1_000) &- switchedOn &- Int64(saturating: before)
    }
    queue.close()
    return summary
  }

  /// Periods of the take after the last frame that arrived in it.
  private var periodsAfterLast: Int64 = 0
  /// The place of the first frame that arrived, from the first period claimed.
  private var firstPeriod: Int64 = 0

  private mutating func captureFrames() throws(CaptureError) -> StopReason {
    let patience = max(
      5_000_000, Int64(saturating: 20 * frameRate.frameDuration.doubleValue * 1_000_000))
    lastDequeue = CaptureClock.microseconds()
    while true {
      if let reason = control.requestedStop { return reason }
      switch try driver.dequeue(timeoutMilliseconds: 100) {
      case .ended: return .duration
      case .none:
        guard CaptureClock.microseconds() - lastDequeue < patience else {
          throw CaptureError(
            .noFrames, "the device delivered no frame for \(patience / 1_000_000) s",
            hint: "check its cable and input, or choose another mode")
        }
      case .frame(let buffer):
        if let reason = take(buffer) {
          try? buffer.giveBack()  // The take is whole; nobody needs this buffer again.
          return reason
        }
        try buffer.giveBack()
      }
    }
  }

  /// Judges one frame and hands it over; a reason to stop when it ends the take.
  private mutating func take(_ buffer: borrowing LentBuffer) -> StopReason? {
    let stamp = buffer.stamp
    let now = CaptureClock.microseconds()
    let waited = now - lastDequeue
    lastDequeue = now
    if let origin, let duration = limit.duration,
      isAtOrAfter(duration, stamp.microseconds &- origin)
    {
      countMissingBeforeEnd(origin: origin, duration: duration, next: stamp, waited: waited)
      return .duration
    }
    let step = judge.advance(to: stamp)
    if summary.firstMicroseconds == nil {
      summary.firstMicroseconds = stamp.microseconds
      firstPeriod = step - 1
      pending.lostStart += step - 1
    } else {
      summary.periodsBetween += step
      countLost(step - 1, stamp: stamp, waited: waited)
    }
    summary.lastMicroseconds = stamp.microseconds
    pendingPeriods += step
    let isShort = expectedByteCount.map { buffer.bytes.count < $0 } ?? buffer.bytes.isEmpty
    if stamp.isCorrupt || isShort {
      pending.corrupt += 1
      return nil
    }
    let frame = QueuedFrame(
      stamp: stamp, periods: pendingPeriods, missing: pending, bytes: buffer.bytes)
    guard queue.push(frame) else {
      pending.lostQueue += 1
      return nil
    }
    control.missing.wrappingAdd(pending.count, ordering: .relaxed)
    control.queued.wrappingAdd(1, ordering: .relaxed)
    if origin == nil { origin = stamp.microseconds }
    pending = MissingFrames()
    pendingPeriods = 0
    queuedCount += 1
    return limit.frameCount.map { queuedCount >= $0 } == true ? .frames : nil
  }

  /// Tells the two places where frames get lost before they reach us.
  ///
  /// A driver that knows says so. Of V4L2 we know when we last came for a frame: only when its
  /// buffers could all have been filled since then was it left without one.
  private mutating func countLost(_ count: Int64, stamp: FrameStamp, waited: Int64) {
    guard count > 0 else { return }
    let overruns: Int64
    if let known = stamp.overrunsBefore {
      overruns = min(count, Int64(known))
    } else {
      let filling = Double(driver.bufferCount - 1) * frameRate.frameDuration.doubleValue
      overruns = Double(waited) >= filling * 1_000_000 ? count : 0
    }
    pending.lostKernel += overruns
    pending.lostDevice += count - overruns
  }

  /// Counts the periods between the last frame and the end of the take, whose next frame came
  /// only after the end.
  private mutating func countMissingBeforeEnd(
    origin: Int64, duration: MediaTime, next: FrameStamp, waited: Int64
  ) {
    let last = summary.lastMicroseconds ?? origin
    let toEnd =
      (duration.doubleValue - Double(last &- origin) / 1_000_000) * frameRate.doubleValue
    var ahead = judge
    let missing = ahead.advance(to: next) - 1
    // Within a fiftieth of a period the end falls on a frame, whatever the driver rounded.
    let within = max(0, min(missing, Int64(saturating: (toEnd - 0.02).rounded(.up) - 1)))
    periodsAfterLast = within
    countLost(within, stamp: next, waited: waited)
  }

  private func isAtOrAfter(_ duration: MediaTime, _ microseconds: Int64) -> Bool {
    MediaTime(microseconds: microseconds) >= duration
  }
}
