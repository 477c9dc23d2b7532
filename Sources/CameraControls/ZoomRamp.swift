// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankLinuxSystem
import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// The gradual zoom of a camera, of which one runs at a time.
final class ZoomRamp: Sendable {
  private let camera: ControlledCamera
  private let task = Mutex<Task<Double, any Error>?>(nil)

  init(_ camera: ControlledCamera) { self.camera = camera }

  deinit { cancel() }

  /// Starts a ramp of powers of two per second from the current factor, and cancels the one before.
  func start<RampClock: Clock>(
    to end: Double, rate: Double, _ clock: RampClock
  ) throws(MediaError) -> Task<Double, any Error> where RampClock.Duration == Duration {
    _ = try camera.setting(.zoomFactor, end)
    guard rate > 0, rate.isFinite else {
      throw camera.outOfRange("the zoom rate", "\(rate)", takes: "numbers above 0")
    }
    // Some drivers report a value outside the range.
    let limit = try camera.range(of: .zoomFactor)?.upperBound ?? end
    let start = min(max(try camera.read(.zoomFactor) ?? 1, 1), limit)
    let new = Task { [camera] in
      try await Self.run(camera, from: start, to: end, rate: rate, clock)
    }
    task.withLock { task in
      task?.cancel()
      task = new
    }
    return new
  }

  /// Stops the ramp at its current factor.
  func cancel() { task.withLock { $0.take() }?.cancel() }

  /// Updates the zoom until the end of the ramp and returns the final factor.
  private static func run<RampClock: Clock>(
    _ camera: ControlledCamera, from start: Double, to end: Double, rate: Double, _ clock: RampClock
  ) async throws -> Double where RampClock.Duration == Duration {
    let began = clock.now
    // At an extremely low rate, the quotient is infinite. The limit of 1e9 s keeps it finite.
    let seconds = min(abs(log2(end / start)) / rate, 1e9)
    let direction = end < start ? -1.0 : 1.0
    var last: Int64?
    // The zoom factor depends on the elapsed time, not on the number of steps. A camera that is
    // slow to answer therefore makes fewer steps, but does not lengthen the ramp.
    while true {
      let elapsed = began.duration(to: clock.now).doubleValue
      guard elapsed < seconds else { break }
      let factor = start * exp2(direction * rate * elapsed)
      let step = try camera.setting(.zoomFactor, max(1, min(factor, max(start, end))))
      if step.number != last { try camera.set(step.control, step.number) }
      last = step.number
      try await clock.sleep(
        until: clock.now.advanced(by: .milliseconds(15)), tolerance: .milliseconds(2))
    }
    try Task.checkCancellation()
    return try camera.write(.zoomFactor, end)
  }
}
