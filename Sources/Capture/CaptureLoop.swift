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
package struct CaptureEnd: Sendable {
  package var stopReason = StopReason.signal
  package var error: CaptureError?
  /// The first frame after a take that ended at a time, and that time.
  package var next: FrameObservation?
  package var microseconds: Int64?
  /// Frames that arrived at the very end, for which not even a note found room.
  package var unnoted: Int64 = 0
  /// How long the device had been silent when the stream was switched off, in microseconds;
  /// nil where the take ended with a frame.
  package var silence: Int64?
  package var cost = CaptureCost()
}

/// What others may read of a running capture, and how they end it.
package final class CaptureControl: Sendable {
  /// When the stream was switched on, in microseconds of the driver's clock.
  package let switchedOn = Atomic<Int64>(0)
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
  let wholeness: FrameWholeness
  let limit: CaptureLimit
  let queue: FrameQueue
  let control: CaptureControl

  private var end = CaptureEnd()
  private var observer: FrameObserver
  private var queuedCount: Int64 = 0
  /// The time of the first frame queued: the take's zero.
  private var origin: Int64?

  init(
    driver: any FrameDriver, frameRate: FrameRate, wholeness: FrameWholeness, limit: CaptureLimit,
    queue: FrameQueue, control: CaptureControl
  ) {
    self.driver = driver
    self.frameRate = frameRate
    self.wholeness = wholeness
    self.limit = limit
    self.queue = queue
    self.control = control
    observer = FrameObserver(driver: driver, frameRate: frameRate)
  }

  /// Captures until a limit, a request, the source's end or a failure, then stops the driver.
  mutating func run() -> CaptureEnd {
    control.switchedOn.store(observer.lastArrival, ordering: .relaxed)
    do throws(CaptureError) {
      try driver.start()
      end.stopReason = try captureFrames()
    } catch {
      end.error = error
      end.stopReason = error.code == .deviceLost ? .deviceLost : .error
    }
    switch end.stopReason {
    case .duration, .frames: break
    default: end.silence = driver.microseconds() &- observer.lastArrival
    }
    driver.stop()
    queue.close()
    end.cost = observer.latencies.cost
    end.cost.captureThread = CaptureCost.threadNanoseconds()
    return end
  }

  private mutating func captureFrames() throws(CaptureError) -> StopReason {
    while true {
      if let reason = control.requestedStop { return reason }
      switch try driver.dequeue(timeoutMilliseconds: 100) {
      case .ended: return .duration
      case .none: try observer.checkSilence()
      case .frame(let buffer):
        if let reason = take(buffer) {
          try? buffer.giveBack()  // The take is whole; nobody needs this buffer again.
          return reason
        }
        try buffer.giveBack()
        observer.noteReturn()
      }
    }
  }

  /// Notes one frame and hands it over; a reason to stop when it ends the take.
  private mutating func take(_ buffer: borrowing LentBuffer) -> StopReason? {
    var frame = observer.observe(buffer.stamp)
    frame.unnoted = end.unnoted
    if let origin, let duration = limit.duration,
      isAtOrAfter(duration, frame.microseconds &- origin)
    {
      end.next = frame
      end.microseconds = origin &+ Int64(saturating: duration.doubleValue * 1_000_000)
      return .duration
    }
    if buffer.stamp.isCorrupt || !wholeness.holds(buffer.bytes) {
      frame.fate = .corrupt
    } else if queue.push(QueuedFrame(observation: frame, bytes: buffer.bytes)) {
      end.unnoted = 0
      if origin == nil { origin = frame.microseconds }
      queuedCount += 1
      return limit.frameCount.map { queuedCount >= $0 } == true ? .frames : nil
    } else {
      frame.fate = .refused
    }
    let note = QueuedFrame(observation: frame, bytes: UnsafeRawBufferPointer(start: nil, count: 0))
    end.unnoted = queue.push(note) ? 0 : end.unnoted + 1
    return nil
  }

  private func isAtOrAfter(_ duration: MediaTime, _ microseconds: Int64) -> Bool {
    MediaTime(microseconds: microseconds) >= duration
  }
}
