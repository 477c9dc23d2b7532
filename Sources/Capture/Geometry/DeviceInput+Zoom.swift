// SPDX-License-Identifier: Apache-2.0

import OvercrankDeviceDiscovery
public import OvercrankMediaCore

/// Zoom by cropping, for every camera.
///
/// The driver crops if it can (`VIDIOC_S_SELECTION`). Otherwise the outputs crop and scale what
/// they deliver, encode or store. Packets that are copied to a movie keep the whole image, and the
/// movie gets a clean aperture (`clap`) instead. The zoom of the camera's lens or firmware is
/// separate, in ``CameraControls``, and multiplies with this zoom.
extension DeviceInput {
  /// The zoom factor of a frame that is captured now.
  public var videoZoomFactor: Double { geometry.zoom.factor(at: driver.microseconds()) }

  /// The greatest zoom factor, at which the crop still has 16 pixels in each direction.
  public var videoMaxZoomFactor: Double {
    max(1, Double(min(format.width, format.height)) / 16)
  }

  /// Whether the driver crops, as opposed to the outputs.
  ///
  /// The driver is first asked to crop when a zoom factor is set, so the value is false before
  /// that.
  public var isVideoZoomedByDriver: Bool { geometry.zoom.last?.isByDriver ?? false }

  /// Sets the zoom at once and cancels a running ramp.
  ///
  /// If the outputs crop, the factor applies to every frame that is captured after the call. If the
  /// driver crops, a few frames with a capture time after the call may still show the previous
  /// factor.
  ///
  /// - Parameter factor: From 1 to ``videoMaxZoomFactor``.
  /// - Returns: The factor in effect. It differs from `factor` if the driver crops only in steps.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  @discardableResult
  public func setVideoZoomFactor(_ factor: Double) throws(MediaError) -> Double {
    try check(factor)
    geometry.cancelRamp()
    return set(factor)
  }

  /// Zooms smoothly at a constant rate in powers of two per second.
  ///
  /// At rate 1 the factor doubles, or halves, each second of the capture clock. A ramp that is
  /// already running stops at its current factor. The call returns at once;
  /// ``videoZoomFactors()`` reports each frame of the ramp.
  ///
  /// - Parameters:
  ///   - factor: The target, from 1 to ``videoMaxZoomFactor``.
  ///   - rate: Powers of two per second, above zero.
  /// - Throws: `MediaError` with `.controlOutOfRange`.
  public func ramp(toVideoZoomFactor factor: Double, withRate rate: Double) throws(MediaError) {
    try ramp(toVideoZoomFactor: factor, withRate: rate, clock: ContinuousClock())
  }

  /// Zooms smoothly, and measures the pauses between the driver's crop steps with a given clock.
  package func ramp<RampClock: Clock>(
    toVideoZoomFactor factor: Double, withRate rate: Double, clock: RampClock
  ) throws(MediaError) where RampClock.Duration == Duration {
    try check(factor)
    guard rate > 0, rate.isFinite else {
      throw .zoomOutOfRange("the zoom rate", rate, takes: "numbers above 0")
    }
    geometry.cancelRamp()
    let now = driver.microseconds()
    let start = geometry.zoom.factor(at: now)
    let ramp = VideoZoomTimeline.Piece(from: now, start: start, target: factor, rate: rate)
    guard driver.zoom(to: start) != nil else { return geometry.zoom.append(ramp) }
    let (geometry, driver) = (geometry, driver)
    geometry.beginRamp { number in
      Task {
        while !Task.isCancelled {
          let time = driver.microseconds()
          let next = ramp.factor(at: time)
          guard let granted = driver.zoom(to: next) else { break }
          geometry.zoom.append(
            VideoZoomTimeline.Piece(from: time, start: next, target: granted, isByDriver: true))
          if next == factor { break }
          try? await clock.sleep(
            until: clock.now.advanced(by: .milliseconds(15)), tolerance: .milliseconds(2))
        }
        geometry.endRamp(number)
      }
    }
  }

  /// Stops a running ramp at its current factor.
  ///
  /// Does nothing if no ramp is running.
  public func cancelVideoZoomRamp() {
    guard isRampingVideoZoom else { return }
    geometry.cancelRamp()
    set(videoZoomFactor)
  }

  /// Whether a zoom ramp is running.
  public var isRampingVideoZoom: Bool {
    if geometry.isRampingByDriver { return true }
    guard let last = geometry.zoom.last, last.rate > 0 else { return false }
    return driver.microseconds() < last.end
  }

  /// The zoom factor of each frame that is captured after this call.
  ///
  /// Each iteration of the sequence buffers the factors of the newest 4096 frames. If the driver
  /// crops, the factor of a frame is the one set at its capture time. The image may show that
  /// factor a few frames later.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if no thread can be created.
  public func videoZoomFactors() throws(MediaError)
    -> some AsyncSequence<VideoZoomFrame, Never> & Sendable
  {
    try geometry.observeZoom().hub.events()
  }

  private func check(_ factor: Double) throws(MediaError) {
    guard factor >= 1, factor <= videoMaxZoomFactor else {
      throw .zoomOutOfRange(
        "the zoom factor of \(device.address)", factor, takes: "1 to \(videoMaxZoomFactor)")
    }
  }

  /// If the driver crops, sets the last zoom factor in the driver again, before a new stream.
  func restoreZoom() {
    guard let last = geometry.zoom.last, last.isByDriver else { return }
    set(last.target)
  }

  /// Sets a zoom factor in the driver or, if the driver cannot crop, for the outputs.
  @discardableResult
  private func set(_ factor: Double) -> Double {
    let granted = driver.zoom(to: factor)
    // The time from which the new factor applies is read after the driver's answer, which may take
    // a while.
    let piece = VideoZoomTimeline.Piece(
      from: driver.microseconds(), start: factor, target: granted ?? factor,
      isByDriver: granted != nil)
    geometry.zoom.append(piece)
    return piece.target
  }
}
