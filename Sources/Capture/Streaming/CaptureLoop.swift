// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
package import OvercrankFrameAccounting
import OvercrankLinuxSystem
package import OvercrankMediaCore
package import Synchronization

/// Why a capture ended.
public enum StopReason: String, Hashable, Sendable, Codable {
  /// The duration asked for is reached, or a file camera was played to its end.
  case duration
  /// The number of frames asked for is reached.
  case frames
  /// Someone asked for it: Ctrl-C, or a call.
  case signal
  /// The file has the size asked for, or a burst has filled the memory.
  case maxSize = "max_size"
  /// The disk has no more than the free space asked for.
  case minFree = "min_free"
  /// As many clips as asked for were recorded around triggers.
  case maxClips = "max_clips"
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
  package var error: MediaError?
  package var frames = FrameAccount.End()
  /// How long the last frame of a source that ended lasts, in microseconds, where it says so.
  package var lastFrameDuration: Int64?
  package var cost = CaptureStatistics()

  package init(stopReason: StopReason = .signal) { self.stopReason = stopReason }
}

extension CaptureEnd {
  fileprivate mutating func fail(_ error: MediaError) {
    self.error = error
    stopReason = error.code == .deviceLost ? .deviceLost : .error
  }
}

/// What others may read of a running capture, and how they end it.
package final class CaptureControl: Sendable {
  /// When the stream was switched on, in microseconds of the driver's clock.
  package let switchedOn = Atomic<Int64>(0)
  private let stopRequest = Mutex<StopReason?>(nil)
  private let isStopRequested = Atomic<Bool>(false)
  /// Whether frames are to be left out of the take.
  package let isPaused = Atomic<Bool>(false)

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

/// The work of the capture thread: dequeue, show to every sink, give back; nothing else, and no
/// waiting for anyone but the driver and, where that waits for its takers, for them.
struct CaptureLoop: CaptureWork {
  let pool: BufferPool
  let integrityCheck: FrameIntegrityCheck
  let control: CaptureControl
  let sinkList: SinkList<any FrameSink>

  private var sinks: [any FrameSink] = []
  private var end = CaptureEnd()
  private var observer: FrameObserver

  init(
    pool: BufferPool, frameRate: FrameRate, integrityCheck: FrameIntegrityCheck,
    control: CaptureControl,
    sinkList: SinkList<any FrameSink>
  ) {
    self.pool = pool
    self.integrityCheck = integrityCheck
    self.control = control
    self.sinkList = sinkList
    observer = FrameObserver(driver: pool.driver, frameRate: frameRate)
  }

  /// Switches the stream on.
  ///
  /// - Throws: `MediaError` as the driver says; the sinks were told of the end then.
  mutating func start() throws(MediaError) {
    control.switchedOn.store(observer.lastArrival, ordering: .relaxed)
    do throws(MediaError) { try pool.start() } catch {
      end.fail(error)
      close()
      throw error
    }
  }

  /// Captures until a sink ends it, a request, the source's end or a failure, then stops the
  /// driver.
  mutating func run() -> CaptureEnd {
    do throws(MediaError) { end.stopReason = try captureFrames() } catch { end.fail(error) }
    switch end.stopReason {
    case .duration, .frames: break
    default:
      end.frames.silence = end.frames.silence ?? pool.driver.microseconds() &- observer.lastArrival
    }
    pool.stop()
    end.cost = observer.latencies.cost
    end.cost.captureThread = CaptureStatistics.threadTime()
    close()
    return end
  }

  private mutating func close() {
    sinkList.close(&sinks)
    for sink in sinks { sink.end(end) }
  }

  private mutating func captureFrames() throws(MediaError) -> StopReason {
    while true {
      sinkList.update(&sinks)
      if let reason = control.requestedStop { return reason }
      guard let buffer = try pool.driver.dequeue(timeoutMilliseconds: 100) else {
        if pool.driver.hasEnded {
          end.lastFrameDuration = pool.driver.lastFrameDuration
          return .duration
        }
        try observer.checkSilence()
        continue
      }
      if pool.driver.waitsForTakers, let reason = waitForSpace(for: buffer.bytes.count) {
        // The capture ends before this frame.
        end.frames.silence = 0
        return reason
      }
      if let reason = try show(buffer) { return reason }
      observer.noteReturn()
    }
  }

  /// Waits until every sink has room for a frame; a reason to stop where there is one before that.
  private mutating func waitForSpace(for byteCount: Int) -> StopReason? {
    while !sinks.allSatisfy({ $0.hasSpace(for: byteCount) }) {
      if let reason = control.requestedStop { return reason }
      MonotonicClock.pause()
      sinkList.update(&sinks)
    }
    // A sink that is to end says that it has room, whether it has or not.
    return control.requestedStop
  }

  /// Shows a frame to the sinks; a reason to stop when it ends the capture.
  private mutating func show(_ frame: consuming DequeuedBuffer) throws(MediaError) -> StopReason? {
    observer.observe(&frame.observation)
    frame.isWhole = !frame.observation.isMarkedCorrupt && integrityCheck.holds(frame.bytes)
    var reason: StopReason?
    for sink in sinks {
      if let end = sink.take(&frame) { reason = reason ?? end }
    }
    guard reason != nil else {
      try frame.finish(in: pool)
      return nil
    }
    try? frame.finish(in: pool)  // The take is complete, so an error no longer matters.
    return reason
  }
}
