// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

extension CameraControls {
  /// Whether the camera zooms.
  public var isVideoZoomSupported: Bool { (try? zoomControl) != nil }

  /// How much larger than at its least zoom the camera shows things; nil where it does not zoom.
  ///
  /// It is the value of `V4L2_CID_ZOOM_ABSOLUTE`, whose unit is the driver's, over the minimum.
  /// A camera whose minimum is not above zero does not tell how its values compare, and counts as
  /// one without zoom; its control can still be set by name.
  public var videoZoomFactor: Double? {
    get throws(MediaError) {
      guard let control = try zoomControl, let number = try value(control).number else {
        return nil
      }
      return Double(number) / Double(control.minimum)
    }
  }

  /// The zoom factors that the camera takes, from 1; nil where it does not zoom.
  public var videoZoomFactorRange: ClosedRange<Double>? {
    get throws(MediaError) { try zoomControl?.zoomFactors }
  }

  /// Sets the zoom, at once; a ramp under way ends.
  ///
  /// - Parameter factor: One of ``videoZoomFactorRange``; the driver's value nearest to it is set.
  /// - Returns: The factor that is then in force.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  @discardableResult
  public func setVideoZoomFactor(_ factor: Double) throws(MediaError) -> Double {
    let control = try requireZoom(factor)
    cancelVideoZoomRamp()
    return Double(try set(control, control.zoomValue(factor))) / Double(control.minimum)
  }

  /// Zooms smoothly, at a rate that looks even: powers of two per second.
  ///
  /// At rate 1 the factor doubles, or halves, each second. A ramp under way ends where it is. The
  /// call does not wait; the ramp ends with this object.
  ///
  /// - Parameters:
  ///   - factor: One of ``videoZoomFactorRange``.
  ///   - rate: Powers of two per second, above zero.
  ///   - clock: What tells how long the ramp has run.
  /// - Returns: The ramp, whose value is the factor at its end, and whose error is a
  ///   `MediaError` or, after ``cancelVideoZoomRamp()``, a `CancellationError`.
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
    // A driver may hold anything; a ramp begins inside the range.
    let start = max(Double(first) / Double(control.minimum), 1)
    let ramp = ZoomRamp(control: control, node: node, start: start, end: factor, rate: rate)
    let task = Task { try await ramp.run(clock) }
    state.withLock { state in
      state.zoomRamp?.cancel()
      state.zoomRamp = task
    }
    return task
  }

  /// Ends a ramp where it is; nothing happens where none is under way.
  public func cancelVideoZoomRamp() {
    state.withLock { state in
      state.zoomRamp?.cancel()
      state.zoomRamp = nil
    }
  }

  /// The control, if its minimum makes its values comparable.
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

/// A zoom on its way from one factor to another.
private struct ZoomRamp: Sendable {
  let control: DeviceControl
  let node: ControlledNode
  let start: Double
  let end: Double
  let rate: Double

  /// Sets the zoom again and again until the end is reached, and returns the factor there.
  func run<RampClock: Clock>(
    _ clock: RampClock
  ) async throws -> Double where RampClock.Duration == Duration {
    let began = clock.now
    // Of a rate so low that the ramp would never end, the end is as good as never.
    let seconds = min(abs(log2(end / start)) / rate, 1e9)
    let direction = end < start ? -1.0 : 1.0
    var last: Int64?
    // By the clock and not by counting: a camera that is slow to answer does not slow the ramp.
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
  /// The factors from the minimum to the maximum, or nil where they cannot be told.
  fileprivate var zoomFactors: ClosedRange<Double>? {
    guard minimum > 0, minimum < maximum else { return nil }
    return 1...Double(maximum) / Double(minimum)
  }

  /// The driver's value that is nearest to a factor.
  fileprivate func zoomValue(_ factor: Double) -> Int64 {
    nearestValue(to: Int64(saturating: (Double(minimum) * factor).rounded()))
  }
}
