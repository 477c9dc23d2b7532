// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankV4L2

/// A gradual zoom from one factor to another.
struct ZoomRamp: Sendable {
  let control: DeviceControl
  let node: ControlledNode
  let start: Double
  let end: Double
  let rate: Double

  /// Updates the zoom until the end of the ramp and returns the final factor.
  func run<RampClock: Clock>(
    _ clock: RampClock
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
      let wanted = control.zoomValue(factor)
      if wanted != last { try set(wanted) }
      last = wanted
      try await clock.sleep(
        until: clock.now.advanced(by: .milliseconds(15)), tolerance: .milliseconds(2))
    }
    try Task.checkCancellation()
    return Double(try set(control.zoomValue(end))) / Double(control.minimum)
  }

  @discardableResult
  private func set(_ value: Int64) throws -> Int64 {
    let granted = try node.use { device throws(CallFailure) in
      try device.set(control, to: .number(value))
    }
    return granted.number ?? value
  }
}

extension DeviceControl {
  /// The range of zoom factors from the control's minimum to its maximum, or nil if the minimum is
  /// zero or less.
  var zoomFactors: ClosedRange<Double>? {
    guard minimum > 0, minimum < maximum else { return nil }
    return 1...Double(maximum) / Double(minimum)
  }

  /// The driver's value nearest to a zoom factor.
  func zoomValue(_ factor: Double) -> Int64 {
    nearestValue(to: Int64(saturating: (Double(minimum) * factor).rounded()))
  }
}
