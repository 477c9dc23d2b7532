// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
package import OvercrankFrameAccounting
import OvercrankLinuxSystem
package import OvercrankMediaCore
package import Synchronization

/// The reason why a capture ended.
public enum StopReason: String, Hashable, Sendable, Codable {
  /// The requested duration was reached, or a file camera reached its end.
  case duration
  /// The requested number of frames was reached.
  case frames
  /// A stop was requested by a signal, such as that of Ctrl-C.
  case signal
  /// A stop was requested by a call of the program.
  case stopped
  /// The camera or the output left the session, or the camera was set to another mode.
  case reconfigured
  /// Another program took the device.
  case interrupted
  /// The file reached the requested size, or a burst filled its memory.
  case maxSize = "max_size"
  /// The free disk space fell to the requested limit.
  case minFree = "min_free"
  /// The requested number of triggered clips was recorded.
  case maxClips = "max_clips"
  /// The disk is full.
  case diskFull = "disk_full"
  /// The device was lost.
  case deviceLost = "device_lost"
  /// Another error occurred.
  case error

  /// Whether the reason is a limit that the program had requested.
  ///
  /// False for an error or a requested stop.
  public var isLimit: Bool {
    switch self {
    case .duration, .frames, .maxSize, .minFree, .maxClips: true
    case .signal, .stopped, .reconfigured, .interrupted, .diskFull, .deviceLost, .error: false
    }
  }
}

/// The final state of a capture thread.
package struct CaptureEnd: Sendable {
  package var stopReason = StopReason.signal
  package var error: MediaError?
  package var frames = FrameAccount.End()
  /// The duration of the last frame in microseconds, if the source ended and defines it.
  ///
  /// Otherwise nil.
  package var lastFrameDuration: Int64?
  package var cost = CaptureStatistics()

  package init(stopReason: StopReason = .signal) { self.stopReason = stopReason }

  /// The end of a stream that failed.
  init(error: MediaError) { fail(error) }

  fileprivate mutating func fail(_ error: MediaError) {
    self.error = error
    stopReason =
      switch error.code {
      case .deviceLost: .deviceLost
      case .deviceBusy: .interrupted
      default: .error
      }
  }
}

/// An object through which other threads stop or pause a running capture.
package final class CaptureControl: Sendable {
  /// The start time of the stream, in microseconds of the driver's clock.
  package let switchedOn = Atomic<Int64>(0)
  private let stopRequest = Mutex<StopReason?>(nil)
  private let isStopRequested = Atomic<Bool>(false)
  /// Whether frames are currently left out of the recording.
  package let isPaused = Atomic<Bool>(false)
  /// The control that stops this capture too; nil if there is none.
  private let parent: CaptureControl?

  package init() { parent = nil }

  /// Creates the control of a capture that stops at the latest with another one.
  init(following parent: CaptureControl) { self.parent = parent }

  /// Sets the start time of the stream, also for the control that this one follows.
  package func didSwitchOn(atMicroseconds time: Int64) {
    switchedOn.store(time, ordering: .relaxed)
    parent?.didSwitchOn(atMicroseconds: time)
  }

  /// Stops the capture within 0.1 s.
  ///
  /// If it is called several times, the first reason counts.
  package func stop(_ reason: StopReason) {
    stopRequest.withLock { if $0 == nil { $0 = reason } }
    isStopRequested.store(true, ordering: .releasing)
  }

  /// The reason of the requested stop, or nil.
  ///
  /// Takes no lock before a stop is requested, so the capture thread can read it for each frame.
  package var requestedStop: StopReason? {
    guard isStopRequested.load(ordering: .acquiring) else { return parent?.requestedStop }
    return stopRequest.withLock { $0 }
  }
}

/// The loop of the capture thread: dequeue a frame, pass it to every sink, requeue its buffer.
///
/// A camera sets the pace itself, so the loop waits only for the driver. A driver without real-time
/// pacing (`waitsForTakers`) could overrun the sinks, so the loop then also waits until every sink
/// has space.
struct CaptureLoop: CaptureWork {
  let pool: BufferPool
  private var integrityCheck: FrameIntegrityCheck
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
    (self.pool, self.integrityCheck, self.control) = (pool, integrityCheck, control)
    self.sinkList = sinkList
    observer = FrameObserver(driver: pool.driver, frameRate: frameRate)
  }

  /// Starts the stream.
  ///
  /// - Throws: `MediaError` from the driver. The sinks have not ended then.
  mutating func start() throws(MediaError) {
    control.didSwitchOn(atMicroseconds: observer.lastArrival)
    try pool.start()
  }

  /// Captures until a sink, a stop request, the end of the source or an error ends the loop.
  ///
  /// Then the loop stops the driver.
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
          return pool.driver.endReason
        }
        if !pool.driver.derivesFrames { try observer.checkSilence() }
        continue
      }
      if pool.driver.waitsForTakers, let reason = waitForSpace(for: buffer.bytes.count) {
        // A frame just arrived, although it is not passed on. The time since the last recorded
        // frame is therefore not a silence of the device.
        end.frames.silence = 0
        return reason
      }
      if let reason = try show(buffer) { return reason }
      observer.noteReturn()
    }
  }

  /// Waits until every sink has space for a frame.
  ///
  /// Returns the reason of a stop that was requested meanwhile, or nil.
  private mutating func waitForSpace(for byteCount: Int) -> StopReason? {
    while pool.driver.waitsForTakers, !sinks.allSatisfy({ $0.hasSpace(for: byteCount) }) {
      if let reason = control.requestedStop { return reason }
      MonotonicClock.pause()
      sinkList.update(&sinks)
    }
    // If a stop is requested, sinks report space although they have none, so the request is checked
    // here.
    return control.requestedStop
  }

  /// Passes a frame to the sinks.
  ///
  /// Returns the reason if the frame ends the capture, otherwise nil.
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
    try? frame.finish(in: pool)  // Ignores errors: the capture ends anyway.
    return reason
  }
}
