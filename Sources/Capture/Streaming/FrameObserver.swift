// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// What the thread that takes frames from a driver notes of each, without allocating.
struct FrameObserver {
  /// When the last frame was taken, or the stream switched on; microseconds of the driver's clock.
  private(set) var lastArrival: Int64
  private let driver: any FrameDriver
  /// When the last frame was taken, by a clock that goes on while a frame is held.
  private var heldSince: Int64 = 0
  /// A device that is silent for so long, in microseconds, has failed.
  private let timeout: Int64
  private var clock: TimestampUnwrapper
  /// When the last buffers were given back, as many as there are, in a ring.
  private var returns: [Int64]
  private var count = 0
  private(set) var latencies = LatencyRecorder()

  init(driver: any FrameDriver, frameRate: FrameRate) {
    self.driver = driver
    let period = frameRate.frameDuration.doubleValue * 1_000_000
    timeout = max(5_000_000, Int64(saturating: 20 * period))
    clock = TimestampUnwrapper(period: Int64(saturating: period))
    returns = Array(repeating: .min, count: max(1, driver.bufferCount))
    lastArrival = driver.microseconds()
  }

  /// Notes when a frame came that was taken just now.
  mutating func observe(_ frame: inout FrameObservation) {
    lastArrival = driver.microseconds()
    heldSince = driver.waitsForTakers ? MonotonicClock.microseconds() : lastArrival
    frame.arrival = lastArrival
    (frame.microseconds, frame.isClockJump) = clock.read(frame)
    // Its place in the ring is that of the frame as many before it as there are buffers.
    frame.oldestReturn = returns[count % returns.count]
    count += 1
  }

  /// Notes that the last frame's buffer was given back just now.
  mutating func noteReturn() {
    let now = driver.microseconds()
    returns[(count + returns.count - 1) % returns.count] = now
    let end = driver.waitsForTakers ? MonotonicClock.microseconds() : now
    latencies.record(microseconds: end &- heldSince)
  }

  /// Gives a device up that has been silent for too long.
  func checkSilence() throws(MediaError) {
    guard driver.microseconds() &- lastArrival >= timeout else { return }
    throw MediaError(
      .noFrames, "the device delivered no frame for \(timeout / 1_000_000) s",
      recovery: "check its cable and input, or choose another mode")
  }
}
