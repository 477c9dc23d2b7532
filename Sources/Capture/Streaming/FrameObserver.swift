// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// Records when each captured frame was dequeued and its buffer requeued, without allocation.
struct FrameObserver {
  /// The arrival time of the last frame or, before any frame, the start of the stream.
  ///
  /// In microseconds of the driver's clock.
  private(set) var lastArrival: Int64
  private let driver: any FrameDriver
  /// Whether latencies are measured on the system's monotonic clock.
  private let waitsForTakers: Bool
  /// The time when the last frame was dequeued, in microseconds.
  ///
  /// The latency of the frame is measured from this time. The time is on the driver's clock. For a
  /// driver whose clock may stand still while a frame is held (`waitsForTakers`), the time is on
  /// the system's monotonic clock.
  private var heldSince: Int64 = 0
  /// The time without frames after which the device has failed, in microseconds.
  private let timeout: Int64
  private var clock: TimestampUnwrapper
  /// The requeue times of the last buffers, in a ring with one entry per driver buffer.
  private var returns: [Int64]
  private var count = 0
  private(set) var latencies = LatencyRecorder()

  init(driver: any FrameDriver, frameRate: FrameRate) {
    self.driver = driver
    waitsForTakers = driver.waitsForTakers
    let period = frameRate.frameDuration.doubleValue * 1_000_000
    timeout = max(5_000_000, Int64(saturating: 20 * period))
    clock = TimestampUnwrapper(period: Int64(saturating: period))
    returns = Array(repeating: .min, count: max(1, driver.bufferCount))
    lastArrival = driver.microseconds()
  }

  /// Records the arrival of a frame that was just dequeued.
  mutating func observe(_ frame: inout FrameObservation) {
    lastArrival = driver.microseconds()
    heldSince = waitsForTakers ? MonotonicClock.microseconds() : lastArrival
    frame.arrival = lastArrival
    (frame.microseconds, frame.isClockJump) = clock.read(frame)
    // The ring has one entry per buffer, so its oldest entry is from `bufferCount` frames ago. That
    // entry is the time at which the buffer of that frame was requeued.
    frame.oldestReturn = returns[count % returns.count]
    count += 1
  }

  /// Records that the last frame's buffer was just requeued.
  mutating func noteReturn() {
    let now = driver.microseconds()
    returns[(count + returns.count - 1) % returns.count] = now
    let end = waitsForTakers ? MonotonicClock.microseconds() : now
    latencies.record(microseconds: end &- heldSince)
  }

  /// Throws if the device has delivered no frame for longer than `timeout`.
  func checkSilence() throws(MediaError) {
    guard driver.microseconds() &- lastArrival >= timeout else { return }
    throw MediaError(
      .noFrames, "the device delivered no frame for \(timeout / 1_000_000) s",
      recovery: "check its cable and input, or choose another mode")
  }
}

/// A check for damaged frames that is fast enough for the capture thread.
///
/// One value checks the frames of one stream, in order of arrival.
package struct FrameIntegrityCheck: Sendable {
  /// The size of a complete uncompressed frame in bytes, or nil for compressed frames.
  private let byteCount: Int?
  /// Whether frames are JPEG images, which start with an SOI and end with an EOI marker.
  private let isJPEG: Bool
  /// Whether a frame with an intact structure has arrived.
  ///
  /// Before that, a defect of the structure may be a habit of the camera.
  private var hasIntactFrame = false

  package init(byteCount: Int?, isJPEG: Bool) {
    (self.byteCount, self.isJPEG) = (byteCount, isJPEG)
  }

  /// Whether a frame is undamaged, judged by its size or, for a JPEG image, by its structure.
  package mutating func holds(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if let byteCount { return bytes.count >= byteCount }
    guard isJPEG else { return !bytes.isEmpty }
    guard let image = JPEGStructure.image(in: bytes) else { return false }
    let isIntact = JPEGStructure.isIntact(image)
    if isIntact { hasIntactFrame = true }
    return isIntact || !hasIntactFrame
  }
}
