// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

extension CameraControls {
  /// Whether the camera has a zoom with a usable range.
  public var isVideoZoomSupported: Bool { (try? zoomControl) != nil }

  /// The zoom relative to the camera's smallest zoom, or nil where the camera cannot zoom.
  ///
  /// The factor is the value of `V4L2_CID_ZOOM_ABSOLUTE` divided by the control's minimum. The unit
  /// of the control is driver-specific. If the minimum is zero or less, the quotient has no
  /// meaning, and the camera counts as one without zoom. The control can then still be set by name.
  public var videoZoomFactor: Double? {
    get throws(MediaError) {
      guard let control = try zoomControl, let number = try value(control).number else {
        return nil
      }
      return Double(number) / Double(control.minimum)
    }
  }

  /// The supported zoom factors, from 1, or nil where the camera cannot zoom.
  public var videoZoomFactorRange: ClosedRange<Double>? {
    get throws(MediaError) { try zoomControl?.zoomFactors }
  }

  /// Sets the zoom at once and cancels a running ramp.
  ///
  /// - Parameter factor: A factor in ``videoZoomFactorRange``. The nearest supported value is set.
  /// - Returns: The zoom factor then in effect.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  @discardableResult
  public func setVideoZoomFactor(_ factor: Double) throws(MediaError) -> Double {
    let control = try requireZoom(factor)
    cancelVideoZoomRamp()
    return Double(try set(control, control.zoomValue(factor))) / Double(control.minimum)
  }

  /// Zooms smoothly at a constant rate in powers of two per second.
  ///
  /// At rate 1 the factor doubles, or halves, each second. A ramp that is already running stops at
  /// its current factor. The call returns at once. The ramp is cancelled when this object is
  /// released.
  ///
  /// - Parameters:
  ///   - factor: The target, a factor in ``videoZoomFactorRange``.
  ///   - rate: Powers of two per second, above zero.
  ///   - clock: The clock that measures the ramp.
  /// - Returns: A task that returns the factor at the end of the ramp. The task throws a
  ///   `MediaError`, or a `CancellationError` after ``cancelVideoZoomRamp()``.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  @discardableResult
  public func rampToVideoZoomFactor<RampClock: Clock>(
    _ factor: Double, withRate rate: Double, clock: RampClock = ContinuousClock()
  ) throws(MediaError) -> Task<Double, any Error> where RampClock.Duration == Duration {
    let control = try requireZoom(factor)
    guard rate > 0, rate.isFinite else {
      throw outOfRange("the zoom rate", "\(rate)", takes: "numbers above 0")
    }
    guard let node, let first = try value(control).number else { throw missing("zoom") }
    // Some drivers report a value below the minimum. The ramp then starts at factor 1.
    let start = max(Double(first) / Double(control.minimum), 1)
    let ramp = ZoomRamp(control: control, node: node, start: start, end: factor, rate: rate)
    let task = Task { try await ramp.run(clock) }
    state.withLock { state in
      state.zoomRamp?.cancel()
      state.zoomRamp = task
    }
    return task
  }

  /// Stops a running ramp at its current factor.
  ///
  /// Does nothing if no ramp is running.
  public func cancelVideoZoomRamp() {
    state.withLock { state in
      state.zoomRamp?.cancel()
      state.zoomRamp = nil
    }
  }

  /// The zoom control, or nil if the camera has none or its minimum is zero or less.
  private var zoomControl: DeviceControl? {
    get throws(MediaError) {
      guard let control = try find(.zoom), control.zoomFactors != nil else { return nil }
      return control
    }
  }

  private func requireZoom(_ factor: Double) throws(MediaError) -> DeviceControl {
    guard let control = try zoomControl, let range = control.zoomFactors else {
      throw missing("zoom")
    }
    guard range.contains(factor) else {
      throw outOfRange("the zoom factor", "\(factor)", takes: "1 to \(range.upperBound)")
    }
    return control
  }
}

/// A gradual zoom from one factor to another.
private struct ZoomRamp: Sendable {
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
    let granted = try node.use { device throws(DeviceError) in
      try device.set(control, to: .number(value))
    }
    return granted.number ?? value
  }
}

extension DeviceControl {
  /// The range of zoom factors from the control's minimum to its maximum, or nil if the minimum is
  /// zero or less.
  fileprivate var zoomFactors: ClosedRange<Double>? {
    guard minimum > 0, minimum < maximum else { return nil }
    return 1...Double(maximum) / Double(minimum)
  }

  /// The driver's value nearest to a zoom factor.
  fileprivate func zoomValue(_ factor: Double) -> Int64 {
    nearestValue(to: Int64(saturating: (Double(minimum) * factor).rounded()))
  }
}
