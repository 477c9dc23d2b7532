// SPDX-License-Identifier: Apache-2.0

import Glibc
public import OvercrankDeviceDiscovery
import OvercrankLinuxSystem
public import OvercrankMediaCore
public import OvercrankRaster
import OvercrankV4L2
import Synchronization

/// The controls of a camera: focus, exposure, white balance, zoom and light.
///
/// Properties have the names and meaning of those of `AVCaptureDevice`. Controls can be changed
/// while a session captures. If this program has locked the device, calls use the handle that holds
/// the lock, so they still succeed. The camera keeps its settings after the program ends, unless a
/// property says otherwise.
///
/// A camera supports only some of these controls. Each control has a property or method that
/// reports whether it is supported. Setting an unsupported control throws. Files and the synthetic
/// camera have no controls.
///
/// ```swift
/// let controls = try CameraControls(device: camera)
/// if controls.isExposureModeSupported(.custom) {
///   try controls.setExposureModeCustom(
///     duration: MediaTime(microseconds: 4_000), gain: nil, rounding: .towardZero)
/// }
/// ```
///
/// All calls may come from any thread. A call blocks while the driver communicates with the camera.
/// Concurrent calls run one after the other.
public final class CameraControls: Sendable {
  let camera: ControlledCamera
  private let torch: TorchControl
  private let zoomRamp = Mutex<Task<Double, any Error>?>(nil)
  private let storedFlashMode = Mutex(FlashMode.off)
  /// The exposure that ``ExposureMode/locked`` set manually, because the camera has no exposure
  /// lock.
  ///
  /// Nil if exposure is not locked in this way.
  private let lockedExposure = Mutex<ExposureSetting?>(nil)
  /// The last readings of automatic values, and the controls whose readings have differed.
  private let automaticValues = Mutex(
    (last: [ControlID: Int64](), changed: Set<ControlID>()))
  /// Waits between two readings of an automatic value.
  ///
  /// Replaced in tests.
  private let pauseBetweenReadings: @Sendable () -> Void

  /// Opens a device to control it.
  ///
  /// - Parameter device: The camera, which may be capturing.
  /// - Throws: `MediaError` with `.deviceLost`, `.noPermission`.
  public init(device: CaptureDevice) throws(MediaError) {
    camera = try ControlledCamera(device)
    torch = TorchControl(camera)
    pauseBetweenReadings = Self.pause
  }

  /// Opens a device node to control it.
  package init(
    path: String, waitForChoice: @escaping @Sendable () -> Void = CameraControls.pause
  ) throws(MediaError) {
    camera = try ControlledCamera(path: path)
    torch = TorchControl(camera)
    pauseBetweenReadings = waitForChoice
  }

  deinit {
    zoomRamp.withLock { $0 }?.cancel()
    torch.end()
  }

  /// Runs calls of this object, which block, on a thread of their own, and suspends the task meanwhile.
  ///
  /// ```swift
  /// let focus = try await controls.perform { controls in
  ///   try controls.setFocusMode(.autoFocus)
  ///   return try controls.lensPosition
  /// }
  /// ```
  ///
  /// - Returns: The result of the closure.
  /// - Throws: `MediaError` of the closure, or with `.outOfMemory` if no thread can be created.
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (CameraControls) throws(MediaError) -> Result
  ) async throws(MediaError) -> Result {
    try await BlockingThread.run { _ throws(MediaError) in try body(self) }
  }

  /// Waits between two readings of an automatic value.
  func waitForChoice() { pauseBetweenReadings() }

  /// Whether the readings of a control's automatic value so far, and the next ones, have differed.
  func hasChanged(_ id: ControlID, _ readings: [Int64]) -> Bool {
    automaticValues.withLock { values in
      for reading in readings {
        if let last = values.last[id], last != reading { values.changed.insert(id) }
        values.last[id] = reading
      }
      return values.changed.contains(id)
    }
  }

  /// The number of units of `V4L2_CID_EXPOSURE_ABSOLUTE` per second.
  ///
  /// One unit is 100 µs.
  static let exposureTimescale: Int32 = 10_000

  /// Whether the camera supports an exposure mode.
  public func isExposureModeSupported(_ mode: ExposureMode) -> Bool {
    switch mode {
    case .locked: canLock(.exposure) || manualExposureItem != nil
    case .autoExpose: false
    case .continuousAutoExposure: automaticExposureItem != nil
    case .custom: camera.has(.exposureTime)
    }
  }

  /// The current exposure mode, or nil where the camera does not report one.
  ///
  /// A camera with manual exposure reports ``ExposureMode/custom``, even if another program set it.
  /// After ``setExposureMode(_:)`` with `.locked`, the mode stays ``ExposureMode/locked`` while the
  /// camera keeps the locked values.
  public var exposureMode: ExposureMode? {
    get throws(MediaError) {
      if try isLocked(.exposure) { return .locked }
      if let mode = try camera.number(.automaticExposure) {
        guard ControlID.automaticExposure.isManual(at: mode) else { return .continuousAutoExposure }
      } else if !camera.has(.exposureTime) {
        return nil
      }
      guard let locked = lockedExposure.withLock({ $0 }) else { return .custom }
      return try exposure == locked ? .locked : .custom
    }
  }

  /// Sets the exposure mode: `V4L2_CID_EXPOSURE_AUTO`, `V4L2_CID_3A_LOCK`.
  ///
  /// If the camera has no exposure lock, `.locked` switches to manual exposure and sets the
  /// duration and gain that automatic exposure had chosen.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` for a mode that the camera lacks.
  public func setExposureMode(_ mode: ExposureMode) throws(MediaError) {
    guard isExposureModeSupported(mode) else {
      throw camera.missing("exposure mode \(mode.rawValue)")
    }
    lockedExposure.withLock { $0 = nil }
    switch mode {
    case .locked where canLock(.exposure): try setLock(.exposure, true)
    case .locked, .custom:
      // The automatic values are read before the switch to manual exposure, because the switch
      // restores the last manual values.
      let chosen = try exposure
      try setByHand()
      if let duration = chosen.duration?.value, let control = try camera.find(.exposureTime) {
        try camera.set(control, control.nearestValue(to: duration))
      }
      if let gain = chosen.gain, let control = try gainControl {
        try camera.set(control, control.nearestValue(to: gain))
      }
      guard mode == .locked else { return }
      let held = try exposure
      lockedExposure.withLock { [held] in $0 = held }
    case .continuousAutoExposure:
      guard let item = automaticExposureItem else { return }
      try setLock(.exposure, false)
      try camera.set(.automaticExposure, item)
      try camera.setIfPresent(.automaticGain, 1)
    case .autoExpose: return
    }
  }

  /// The exposure duration and gain in effect, set manually or chosen by the camera.
  public var exposure: ExposureSetting {
    get throws(MediaError) {
      let gain: Int64? =
        if let control = try gainControl { try camera.value(control).number } else { nil }
      return ExposureSetting(duration: try exposureDuration, gain: gain)
    }
  }

  /// The exposure time of each frame, or nil where the camera does not report it.
  public var exposureDuration: MediaTime? {
    get throws(MediaError) {
      try camera.number(.exposureTime).flatMap(Self.duration)
    }
  }

  /// The exposure durations that the camera supports, or nil where duration cannot be set.
  ///
  /// Some cameras change this range with the frame rate. An exposure longer than the frame duration
  /// lowers the frame rate.
  public var exposureDurationRange: ClosedRange<MediaTime>? {
    get throws(MediaError) {
      guard let control = try camera.find(.exposureTime), control.minimum <= control.maximum else {
        return nil
      }
      return Self.duration(control.minimum)...Self.duration(control.maximum)
    }
  }

  /// The gains that the camera supports, in the driver's unit, or nil where gain cannot be set.
  public var gainRange: ClosedRange<Int64>? {
    get throws(MediaError) {
      guard let control = try gainControl, control.minimum <= control.maximum else { return nil }
      return control.minimum...control.maximum
    }
  }

  /// Sets exposure duration and gain manually.
  ///
  /// Automatic exposure and automatic gain are switched off first: `V4L2_CID_EXPOSURE_AUTO`,
  /// `V4L2_CID_AUTOGAIN`.
  ///
  /// - Parameters:
  ///   - duration: The exposure time of each frame. Nil keeps the current duration.
  ///   - gain: The gain in the driver's unit. Nil keeps the current gain.
  ///   - rounding: How to round the duration to a multiple of 100 µs, the unit of V4L2.
  /// - Returns: The duration and gain that the driver reports afterwards.
  /// - Throws: `MediaError` with `.controlOutOfRange` if a value is outside its range; nothing is
  ///   changed then. `.controlNotSupported` if the camera lacks a control.
  @discardableResult
  public func setExposureModeCustom(
    duration: MediaTime?, gain: Int64?, rounding: TimeRounding
  ) throws(MediaError) -> ExposureSetting {
    let time = try camera.require(.exposureTime)
    let units = try duration.map { duration throws(MediaError) in
      try exposureUnits(duration, rounding, time)
    }
    if let gain {
      guard let control = try gainControl else { throw camera.missing("gain") }
      guard control.minimum <= gain, gain <= control.maximum else {
        throw camera.outOfRange(
          "the gain", "\(gain)", takes: "\(control.minimum) to \(control.maximum)")
      }
    }
    let chosen = try exposure
    lockedExposure.withLock { $0 = nil }
    try setByHand()
    if let units = units ?? chosen.duration?.value {
      try camera.set(time, time.nearestValue(to: units))
    }
    if let gain = gain ?? chosen.gain, let control = try gainControl {
      try camera.set(control, control.nearestValue(to: gain))
    }
    return try exposure
  }

  /// The ISO values that the camera supports, in menu order.
  ///
  /// Empty where ISO cannot be set.
  public var isoValues: [Double] {
    get throws(MediaError) {
      try camera.find(.isoSensitivity)?.menu.compactMap(\.number).map { Double($0) / 1000 } ?? []
    }
  }

  /// The current ISO value, or nil where the camera does not report it.
  public var iso: Double? {
    get throws(MediaError) {
      guard let control = try camera.find(.isoSensitivity) else { return nil }
      let index = try camera.value(control).number
      return control.menu.first { $0.index == index }?.number.map { Double($0) / 1000 }
    }
  }

  /// Sets the ISO value manually: `V4L2_CID_ISO_SENSITIVITY`.
  ///
  /// - Parameter iso: One of ``isoValues``.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setISO(_ iso: Double) throws(MediaError) {
    let control = try camera.require(.isoSensitivity)
    guard let item = control.menu.first(where: { $0.number.map { Double($0) / 1000 } == iso })
    else {
      let list = try isoValues.map(\.description).joined(separator: ", ")
      throw camera.outOfRange("the ISO value", "\(iso)", takes: list)
    }
    try camera.setIfPresent(.automaticISO, 0)
    try camera.set(control, item.index)
  }

  /// The exposure compensation, in thousandths of an EV.
  ///
  /// Positive values are brighter: 1000 doubles the light. Nil where the camera has no
  /// compensation.
  public var exposureTargetBias: Int64? {
    get throws(MediaError) {
      guard let control = try camera.find(.exposureBias) else { return nil }
      let held = try camera.value(control).number
      guard control.kind == .integerMenu else { return held }
      return control.menu.first { $0.index == held }?.number
    }
  }

  /// The supported exposure compensations, in thousandths of an EV, darkest first.
  ///
  /// For a camera whose control is a range and not a menu, contains only the smallest and the
  /// greatest value. Empty if the camera has no compensation.
  public var exposureTargetBiases: [Int64] {
    get throws(MediaError) {
      guard let control = try camera.find(.exposureBias) else { return [] }
      if control.kind == .integerMenu { return control.menu.compactMap(\.number).sorted() }
      return [control.minimum, control.maximum]
    }
  }

  /// Sets the exposure compensation: `V4L2_CID_AUTO_EXPOSURE_BIAS`.
  ///
  /// - Parameter bias: Thousandths of an EV. The nearest supported value is set.
  /// - Returns: The compensation then in effect, in thousandths of an EV.
  /// - Throws: `MediaError` with `.controlOutOfRange` beyond the supported limits, or
  ///   `.controlNotSupported`.
  @discardableResult
  public func setExposureTargetBias(_ bias: Int64) throws(MediaError) -> Int64 {
    let control = try camera.require(.exposureBias)
    let offered = try exposureTargetBiases
    guard let darkest = offered.first, let brightest = offered.last, darkest <= bias,
      bias <= brightest
    else {
      throw camera.outOfRange(
        "the exposure bias", "\(bias)/1000 EV",
        takes: "\(offered.first ?? 0) to \(offered.last ?? 0)")
    }
    var wanted = bias
    if control.kind == .integerMenu {
      let nearest = control.menu.min {
        ($0.number ?? .max).distance(from: bias) < ($1.number ?? .max).distance(from: bias)
      }
      wanted = nearest?.index ?? 0
    }
    try camera.set(control, control.nearestValue(to: wanted))
    return try exposureTargetBias ?? bias
  }

  /// Converts an exposure duration to V4L2 units of 100 µs and checks it against the range.
  private func exposureUnits(
    _ duration: MediaTime, _ rounding: TimeRounding, _ control: DeviceControl
  ) throws(MediaError) -> Int64 {
    let units = try? duration.converted(to: Self.exposureTimescale, rounding: rounding).value
    guard let units, control.minimum <= units, units <= control.maximum else {
      let least = Self.duration(control.minimum).secondsText
      let greatest = Self.duration(control.maximum).secondsText
      throw camera.outOfRange(
        "the exposure duration", "\(duration.secondsText) s", takes: "\(least) s to \(greatest) s")
    }
    return units
  }

  /// Converts V4L2 exposure units of 100 µs to a time.
  package static func duration(_ units: Int64) -> MediaTime {
    MediaTime(units, over: exposureTimescale)
  }

  /// Switches automatic exposure and automatic gain off.
  private func setByHand() throws(MediaError) {
    try setLock(.exposure, false)
    if let item = manualExposureItem { try camera.set(.automaticExposure, item) }
    try camera.setIfPresent(.automaticGain, 0)
  }

  /// The camera's general gain control or, if it has none, the sensor's analog gain.
  private var gainControl: DeviceControl? {
    get throws(MediaError) {
      if let control = try camera.find(.gain) { return control }
      return try camera.find(.analogueGain)
    }
  }

  /// The menu item for automatic exposure or, if the menu has none, for aperture priority.
  private var automaticExposureItem: Int64? {
    item(ControlItem.exposureAutomatic, else: ControlItem.exposureAperturePriority)
  }

  /// The menu item for manual exposure or, if the menu has none, for shutter priority.
  private var manualExposureItem: Int64? {
    item(ControlItem.exposureManual, else: ControlItem.exposureShutterPriority)
  }

  private func item(_ first: Int64, else second: Int64) -> Int64? {
    [first, second].first { camera.has(.automaticExposure, item: $0) }
  }
}

extension Int64 {
  /// The absolute difference of two numbers.
  ///
  /// The type is large enough for any two 64-bit numbers.
  fileprivate func distance(from other: Int64) -> UInt128 {
    (Int128(self) - Int128(other)).magnitude
  }
}

/// The mode of the torch, the camera's continuous light, while a session captures.
public enum TorchMode: String, Hashable, Sendable, CaseIterable {
  case off
  case on
  /// The torch is lit while frames are dark.
  case auto
}

/// Whether the flash fires for a photo.
public enum FlashMode: String, Hashable, Sendable, CaseIterable {
  case off
  case on
  /// The flash fires if frames are dark.
  case auto
}

// A camera's LED usually has a separate device node, `/dev/v4l-subdev…`, in the same media device.
// The camera's own node then has no LED controls. The LED's node is opened when a light is first
// used, or when all controls are listed. It stays open, because some drivers switch the LED off
// when its last handle is closed.
extension CameraControls {
  /// Whether the camera has a torch whose device node this user may open.
  public var hasTorch: Bool { camera.has(.flashMode, item: ControlItem.ledLights) }

  /// Whether the camera has a flash whose device node this user may open.
  public var hasFlash: Bool { camera.has(.flashMode, item: ControlItem.ledFlashes) }

  /// Whether the torch is lit now, or nil if the camera has none.
  public var isTorchActive: Bool? {
    get throws(MediaError) {
      guard hasTorch, let mode = try camera.number(.flashMode) else { return nil }
      return mode == ControlItem.ledLights
    }
  }

  /// The torch brightness from 0 to 1, or nil if the camera has no torch.
  ///
  /// The value is 0 while the torch is off. It is 1 for a lit torch without adjustable brightness.
  public var torchLevel: Double? {
    get throws(MediaError) {
      guard let isActive = try isTorchActive else { return nil }
      guard isActive else { return 0 }
      guard let control = try camera.find(.torchIntensity), control.maximum > 0,
        let current = try camera.value(control).number
      else { return 1 }
      return min(max(Double(current) / Double(control.maximum), 0), 1)
    }
  }

  /// The values of the LED's mode and of its torch brightness, saved by ``lightState``.
  package struct LightState: Sendable {
    fileprivate let values: [(id: ControlID, value: Int64)]
  }

  /// The current state of the LED, to be restored later by ``restoreLight(_:)``.
  package var lightState: LightState {
    get throws(MediaError) {
      var values: [(id: ControlID, value: Int64)] = []
      for id in [ControlID.torchIntensity, .flashMode] {
        if let value = try camera.number(id) { values.append((id, value)) }
      }
      return LightState(values: values)
    }
  }

  /// Restores an earlier state of the LED, even if another object or program had set that state.
  ///
  /// The torch mode of this object is then off.
  package func restoreLight(_ light: LightState) throws(MediaError) {
    if hasTorch { try setTorchMode(.off) }
    for (id, value) in light.values { try camera.set(id, value) }
  }

  // MARK: - The flash

  /// The flash mode, or nil if the camera has no flash.
  ///
  /// The mode is off until ``setFlashMode(_:)`` is called.
  public var flashMode: FlashMode? { hasFlash ? storedFlashMode.withLock { $0 } : nil }

  /// Sets the flash mode for the next photos.
  ///
  /// This object stores the mode. The flash fires only when a photo is taken or ``fireFlash()`` is
  /// called.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera has no flash.
  public func setFlashMode(_ mode: FlashMode) throws(MediaError) {
    guard hasFlash else { throw camera.missing("flash") }
    storedFlashMode.withLock { $0 = mode }
  }

  /// Fires the flash once, whatever the current ``flashMode``: `V4L2_CID_FLASH_LED_MODE`,
  /// `V4L2_CID_FLASH_STROBE`.
  ///
  /// If the torch is lit, it goes out and stays off until it is set again.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if software cannot fire the flash, or
  ///   `.deviceFailed` if the LED is too hot or not ready.
  public func fireFlash() throws(MediaError) {
    let strobe = try camera.require(.flashStrobe)
    if hasFlash { try camera.set(.flashMode, ControlItem.ledFlashes) }
    try camera.set(strobe, 1)
  }

  // MARK: - The torch

  /// The torch mode, or nil if the camera has no torch.
  ///
  /// Until a mode is set on this object, the value is the LED's current state, `.on` or `.off`.
  public var torchMode: TorchMode? {
    get throws(MediaError) {
      guard let isActive = try isTorchActive else { return nil }
      return torch.mode ?? (isActive ? .on : .off)
    }
  }

  /// Sets the torch mode: `V4L2_CID_FLASH_LED_MODE`.
  ///
  /// The torch is lit only while a session of this program captures from the camera. It goes out
  /// when this object is destroyed. In the mode ``TorchMode/auto`` the torch is lit while frames
  /// are dark. The brightness of H.264 frames is not measured, so they never light the torch.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera has no torch.
  public func setTorchMode(_ mode: TorchMode) throws(MediaError) {
    guard hasTorch else { throw camera.missing("torch") }
    try torch.set(mode)
  }

  /// Switches the torch on at a brightness: `V4L2_CID_FLASH_TORCH_INTENSITY`.
  ///
  /// It is lit at the times that ``setTorchMode(_:)`` describes.
  ///
  /// - Parameter level: The fraction of the torch's greatest current, above 0 and at most 1. The
  ///   nearest supported current is set.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setTorchModeOn(level: Double) throws(MediaError) {
    guard hasTorch else { throw camera.missing("torch") }
    guard level > 0, level <= 1 else {
      throw camera.outOfRange("the torch level", "\(level)", takes: "numbers above 0, to 1")
    }
    try torch.set(.on, level: level)
  }

  /// Whether the camera has a zoom with a usable range.
  public var isVideoZoomSupported: Bool { (try? zoomControl) != nil }

  /// The zoom relative to the camera's smallest zoom, or nil where the camera cannot zoom.
  ///
  /// The factor is the value of `V4L2_CID_ZOOM_ABSOLUTE` divided by the control's minimum. The unit
  /// of the control is driver-specific. If the minimum is zero or less, the quotient has no
  /// meaning, and the camera counts as one without zoom. The control can then still be set by name.
  public var videoZoomFactor: Double? {
    get throws(MediaError) {
      guard let control = try zoomControl, let number = try camera.value(control).number else {
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
    return Double(try camera.set(control, control.zoomValue(factor))) / Double(control.minimum)
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
      throw camera.outOfRange("the zoom rate", "\(rate)", takes: "numbers above 0")
    }
    guard let node = camera.ownNode, let first = try camera.value(control).number else {
      throw camera.missing("zoom")
    }
    // Some drivers report a value below the minimum. The ramp then starts at factor 1.
    let start = max(Double(first) / Double(control.minimum), 1)
    let ramp = ZoomRamp(control: control, node: node, start: start, end: factor, rate: rate)
    let task = Task { try await ramp.run(clock) }
    zoomRamp.withLock { ramp in
      ramp?.cancel()
      ramp = task
    }
    return task
  }

  /// Stops a running ramp at its current factor.
  ///
  /// Does nothing if no ramp is running.
  public func cancelVideoZoomRamp() {
    zoomRamp.withLock { $0.take() }?.cancel()
  }

  /// The zoom control, or nil if the camera has none or its minimum is zero or less.
  private var zoomControl: DeviceControl? {
    get throws(MediaError) {
      guard let control = try camera.find(.zoom), control.zoomFactors != nil else { return nil }
      return control
    }
  }

  private func requireZoom(_ factor: Double) throws(MediaError) -> DeviceControl {
    guard let control = try zoomControl, let range = control.zoomFactors else {
      throw camera.missing("zoom")
    }
    guard range.contains(factor) else {
      throw camera.outOfRange("the zoom factor", "\(factor)", takes: "1 to \(range.upperBound)")
    }
    return control
  }
}

/// The exposure mode of a camera: fixed, automatic or manual.
public enum ExposureMode: String, Hashable, Sendable, CaseIterable {
  /// The exposure stays at the last automatic values.
  case locked
  /// The camera adjusts the exposure once, then keeps it. V4L2 has no such mode.
  case autoExpose
  /// The camera adjusts the exposure whenever the light changes.
  case continuousAutoExposure
  /// Exposure duration and gain are set manually.
  case custom
}

/// The exposure duration and gain of a camera.
public struct ExposureSetting: Hashable, Sendable {
  /// The exposure time of each frame, or nil where the camera does not report it.
  public let duration: MediaTime?
  /// The gain in the driver's unit, or nil where the camera does not report it.
  public let gain: Int64?
}

/// The white balance mode of a camera: fixed, once or continuous.
public enum WhiteBalanceMode: String, Hashable, Sendable, CaseIterable {
  /// The white balance stays fixed.
  case locked
  /// The camera measures once, then the white balance stays fixed.
  case autoWhiteBalance
  /// The camera adjusts the white balance whenever the light changes.
  case continuousAutoWhiteBalance
}

extension CameraControls {
  /// Whether the camera supports a white balance mode.
  public func isWhiteBalanceModeSupported(_ mode: WhiteBalanceMode) -> Bool {
    switch mode {
    case .locked:
      camera.has(.automaticWhiteBalance) || canLock(.whiteBalance)
        || camera.has(.whiteBalancePreset, item: ControlItem.whiteBalanceManual)
    case .autoWhiteBalance: camera.has(.whiteBalanceOnce)
    case .continuousAutoWhiteBalance:
      camera.has(.automaticWhiteBalance)
        || camera.has(.whiteBalancePreset, item: ControlItem.whiteBalanceAutomatic)
    }
  }

  /// The current white balance mode, or nil where the camera does not report one.
  public var whiteBalanceMode: WhiteBalanceMode? {
    get throws(MediaError) {
      if try isLocked(.whiteBalance) { return .locked }
      if let isAutomatic = try camera.number(.automaticWhiteBalance) {
        return isAutomatic == 0 ? .locked : .continuousAutoWhiteBalance
      }
      return try camera.number(.whiteBalancePreset).map {
        $0 == ControlItem.whiteBalanceAutomatic ? .continuousAutoWhiteBalance : .locked
      }
    }
  }

  /// Sets the white balance mode: `V4L2_CID_AUTO_WHITE_BALANCE`, `V4L2_CID_DO_WHITE_BALANCE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` for a mode that the camera lacks.
  public func setWhiteBalanceMode(_ mode: WhiteBalanceMode) throws(MediaError) {
    guard isWhiteBalanceModeSupported(mode) else {
      throw camera.missing("white balance mode \(mode.rawValue)")
    }
    switch mode {
    case .locked where canLock(.whiteBalance): try setLock(.whiteBalance, true)
    case .locked: try setAutomaticWhiteBalance(false)
    case .autoWhiteBalance:
      try setLock(.whiteBalance, false)
      // Continuous white balance is switched off first, because `V4L2_CID_DO_WHITE_BALANCE` has no
      // effect while continuous white balance is on.
      try camera.setIfPresent(.automaticWhiteBalance, 0)
      try camera.set(.whiteBalanceOnce, 1)
    case .continuousAutoWhiteBalance:
      try setLock(.whiteBalance, false)
      try setAutomaticWhiteBalance(true)
    }
  }

  /// The color temperature of the light that appears white, in kelvin, or nil where the camera does
  /// not report it.
  public var whiteBalanceTemperature: Int64? {
    get throws(MediaError) { try camera.number(.whiteBalanceTemperature) }
  }

  /// The supported color temperatures, in kelvin, or nil where the temperature cannot be set.
  public var whiteBalanceTemperatureRange: ClosedRange<Int64>? {
    get throws(MediaError) {
      guard let control = try camera.find(.whiteBalanceTemperature),
        control.minimum <= control.maximum
      else { return nil }
      return control.minimum...control.maximum
    }
  }

  /// Sets the color temperature manually: `V4L2_CID_WHITE_BALANCE_TEMPERATURE`.
  ///
  /// - Parameter temperature: The color temperature in kelvin. The nearest supported value is set.
  /// - Returns: The color temperature then in effect, in kelvin.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  @discardableResult
  public func setWhiteBalanceModeLocked(temperature: Int64) throws(MediaError) -> Int64 {
    let control = try camera.require(.whiteBalanceTemperature)
    guard control.minimum <= temperature, temperature <= control.maximum else {
      throw camera.outOfRange(
        "the white balance", "\(temperature) K",
        takes: "\(control.minimum) K to \(control.maximum) K")
    }
    try setLock(.whiteBalance, false)
    if isWhiteBalanceModeSupported(.continuousAutoWhiteBalance) {
      try setAutomaticWhiteBalance(false)
    }
    return try camera.set(control, control.nearestValue(to: temperature))
  }

  private func setAutomaticWhiteBalance(_ isOn: Bool) throws(MediaError) {
    if let control = try camera.find(.automaticWhiteBalance) {
      try camera.set(control, isOn ? 1 : 0)
    } else {
      let item = isOn ? ControlItem.whiteBalanceAutomatic : ControlItem.whiteBalanceManual
      try camera.set(.whiteBalancePreset, item)
    }
  }
}

/// The focus mode of a camera: fixed, once or continuous.
public enum FocusMode: String, Hashable, Sendable, CaseIterable {
  /// The lens stays at its position.
  case locked
  /// The camera focuses once, then the lens stays at its position.
  case autoFocus
  /// The camera refocuses whenever it needs to.
  case continuousAutoFocus
}

/// The distances that autofocus searches.
public enum AutoFocusRangeRestriction: String, Hashable, Sendable, CaseIterable {
  /// No restriction: autofocus searches all distances.
  case none
  /// Distances near the camera.
  case near
  /// Distances far from the camera.
  case far

  /// The menu items of `V4L2_CID_AUTO_FOCUS_RANGE` that mean this restriction, in order of
  /// preference.
  fileprivate var items: [Int64] {
    switch self {
    case .none: [ControlItem.focusAnywhere, ControlItem.focusNormal]
    case .near: [ControlItem.focusNear]
    case .far: [ControlItem.focusFar]
    }
  }
}

extension CameraControls {
  /// Whether the camera can restrict the distances that autofocus searches.
  public var isAutoFocusRangeRestrictionSupported: Bool {
    isAutoFocusRangeRestrictionSupported(.near) || isAutoFocusRangeRestrictionSupported(.far)
  }

  /// Whether the camera supports a restriction of the autofocus range.
  public func isAutoFocusRangeRestrictionSupported(
    _ restriction: AutoFocusRangeRestriction
  ) -> Bool {
    restriction.items.contains { camera.has(.automaticFocusRange, item: $0) }
  }

  /// The distances that autofocus searches, or nil where the camera lacks the control.
  public var autoFocusRangeRestriction: AutoFocusRangeRestriction? {
    get throws(MediaError) {
      guard let item = try camera.number(.automaticFocusRange) else { return nil }
      return AutoFocusRangeRestriction.allCases.first { $0.items.contains(item) }
    }
  }

  /// Restricts the distances that autofocus searches: `V4L2_CID_AUTO_FOCUS_RANGE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks the control or the
  ///   restriction.
  public func setAutoFocusRangeRestriction(
    _ restriction: AutoFocusRangeRestriction
  ) throws(MediaError) {
    guard let item = restriction.items.first(where: { camera.has(.automaticFocusRange, item: $0) })
    else { throw camera.missing("restriction of autofocus to \(restriction.rawValue)") }
    try camera.set(.automaticFocusRange, item)
  }

  /// Whether the camera supports a focus mode.
  public func isFocusModeSupported(_ mode: FocusMode) -> Bool {
    switch mode {
    case .locked: camera.has(.automaticFocus) || camera.has(.focus) || canLock(.focus)
    case .autoFocus: camera.has(.automaticFocusStart)
    case .continuousAutoFocus: camera.has(.automaticFocus)
    }
  }

  /// The current focus mode, or nil for a camera with fixed focus.
  public var focusMode: FocusMode? {
    get throws(MediaError) {
      let isContinuous = try camera.number(.automaticFocus)
      if isContinuous == 1 { return try isLocked(.focus) ? .locked : .continuousAutoFocus }
      if try isAdjustingFocus == true { return .autoFocus }
      return isFocusModeSupported(.locked) ? .locked : nil
    }
  }

  /// Sets the focus mode: `V4L2_CID_FOCUS_AUTO`, `V4L2_CID_AUTO_FOCUS_START`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` for a mode that the camera lacks.
  public func setFocusMode(_ mode: FocusMode) throws(MediaError) {
    guard isFocusModeSupported(mode) else { throw camera.missing("focus mode \(mode.rawValue)") }
    switch mode {
    case .locked:
      if camera.has(.automaticFocus) {
        try camera.set(.automaticFocus, 0)
      } else if canLock(.focus) {
        try setLock(.focus, true)
      }
    case .autoFocus:
      // Continuous autofocus is switched off first. V4L2 does not define what a single autofocus
      // run does while continuous autofocus is on.
      try camera.setIfPresent(.automaticFocus, 0)
      try setLock(.focus, false)
      try camera.set(.automaticFocusStart, 1)
    case .continuousAutoFocus:
      try setLock(.focus, false)
      try camera.set(.automaticFocus, 1)
    }
  }

  /// Whether the lens position can be set manually.
  public var isLockingFocusWithLensPositionSupported: Bool {
    (try? camera.find(.focus)).map { $0.minimum < $0.maximum } ?? false
  }

  /// The lens position, from 0 (closest focus) to 1 (farthest focus).
  ///
  /// Nil where the camera does not report the position. `V4L2_CID_FOCUS_ABSOLUTE` uses a
  /// driver-specific unit in which greater values are closer.
  public var lensPosition: Double? {
    get throws(MediaError) {
      guard let control = try camera.find(.focus), let number = try camera.value(control).number
      else {
        return nil
      }
      return control.fraction(of: number).map { 1 - $0 }
    }
  }

  /// Switches autofocus off and moves the lens: `V4L2_CID_FOCUS_ABSOLUTE`.
  ///
  /// - Parameter lensPosition: From 0 (closest focus) to 1 (farthest focus). The nearest position
  ///   that the driver supports is set.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setFocusModeLocked(lensPosition: Double) throws(MediaError) {
    guard (0...1).contains(lensPosition) else {
      throw camera.outOfRange("the lens position", "\(lensPosition)", takes: "0 to 1")
    }
    let control = try camera.require(.focus)
    try camera.setIfPresent(.automaticFocus, 0)
    try setLock(.focus, false)
    try camera.set(control, control.value(at: 1 - lensPosition))
  }

  /// A bit of `V4L2_CID_3A_LOCK`, which locks exposure, white balance or focus.
  struct Lock: Sendable {
    let bit: Int64
    static let exposure = Lock(bit: ControlBit.lockExposure)
    static let whiteBalance = Lock(bit: ControlBit.lockWhiteBalance)
    static let focus = Lock(bit: ControlBit.lockFocus)
  }

  /// Whether the camera supports this bit of `V4L2_CID_3A_LOCK`.
  ///
  /// False if the device is lost.
  func canLock(_ lock: Lock) -> Bool { (try? isLockPresent(lock)) ?? false }

  func isLockPresent(_ lock: Lock) throws(MediaError) -> Bool {
    guard let control = try camera.find(.lock3A) else { return false }
    return control.maximum & lock.bit != 0
  }

  func isLocked(_ lock: Lock) throws(MediaError) -> Bool {
    (try camera.number(.lock3A) ?? 0) & lock.bit != 0
  }

  /// Sets or clears one bit of `V4L2_CID_3A_LOCK` and keeps the other bits.
  ///
  /// Does nothing if the camera does not support the bit.
  func setLock(_ lock: Lock, _ isOn: Bool) throws(MediaError) {
    guard let control = try camera.find(.lock3A), control.maximum & lock.bit != 0 else { return }
    let bits = try camera.value(control).number ?? 0
    let wanted = isOn ? bits | lock.bit : bits & ~lock.bit
    if wanted != bits { try camera.set(control, wanted) }
  }
}

/// The mains frequency whose flicker the camera suppresses.
public enum PowerLineFrequency: Int, Hashable, Sendable, CaseIterable {
  /// The camera does not suppress flicker.
  case off = 0
  case hertz50 = 1
  case hertz60 = 2
  /// The camera detects the mains frequency.
  case automatic = 3
}

extension CameraControls {
  /// Whether automatic exposure may lower the frame rate in low light.
  ///
  /// Set this to false for a steady frame rate; many webcams start with true. Nil where the camera
  /// lacks the control. ``isLowLightBoostEnabled`` is a different control, which does not change
  /// the frame rate.
  public var isAutoVideoFrameRateEnabled: Bool? {
    get throws(MediaError) { try flag(.exposureMayLowerRate) }
  }

  /// Allows automatic exposure to lower the frame rate: `V4L2_CID_EXPOSURE_AUTO_PRIORITY`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`. Some cameras accept the change only while
  ///   exposure is automatic; others throw `.controlOutOfRange` or `.deviceFailed`.
  public func setAutoVideoFrameRateEnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.set(.exposureMayLowerRate, isEnabled ? 1 : 0)
  }

  /// Whether the camera has a scene mode for low light.
  public var isLowLightBoostSupported: Bool { camera.has(.sceneMode, item: ControlItem.sceneNight) }

  /// Whether the scene mode for low light is on, or nil where the camera lacks it.
  ///
  /// Corresponds to `automaticallyEnablesLowLightBoostWhenAvailable`.
  public var isLowLightBoostEnabled: Bool? {
    get throws(MediaError) {
      guard isLowLightBoostSupported else { return nil }
      return try camera.number(.sceneMode) == ControlItem.sceneNight
    }
  }

  /// Switches the scene mode for low light on or off: `V4L2_CID_SCENE_MODE`.
  ///
  /// Low-light boost does not decide whether the camera may lower its frame rate.
  /// ``setAutoVideoFrameRateEnabled(_:)`` does.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setLowLightBoostEnabled(_ isEnabled: Bool) throws(MediaError) {
    guard isLowLightBoostSupported else { throw camera.missing("low-light boost") }
    try camera.set(.sceneMode, isEnabled ? ControlItem.sceneNight : ControlItem.sceneNone)
  }

  /// Whether the camera extends its dynamic range (HDR), or nil where it cannot.
  ///
  /// Many cameras combine two exposures for this, which lowers the frame rate. Use false for high
  /// frame rates.
  public var isVideoHDREnabled: Bool? {
    get throws(MediaError) { try flag(.wideDynamicRange) }
  }

  /// Switches the extended dynamic range (HDR) on or off: `V4L2_CID_WIDE_DYNAMIC_RANGE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setVideoHDREnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.set(.wideDynamicRange, isEnabled ? 1 : 0)
  }

  /// Whether the camera stabilizes the image, or nil where it cannot.
  public var isVideoStabilizationEnabled: Bool? {
    get throws(MediaError) { try flag(.imageStabilization) }
  }

  /// Switches image stabilization on or off: `V4L2_CID_IMAGE_STABILIZATION`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setVideoStabilizationEnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.set(.imageStabilization, isEnabled ? 1 : 0)
  }

  /// The flicker suppression for mains light, or nil where the camera does not report it.
  ///
  /// Flicker suppression restricts the exposure durations that automatic exposure may choose.
  public var powerLineFrequency: PowerLineFrequency? {
    get throws(MediaError) {
      try camera.number(.powerLineFrequency).flatMap { PowerLineFrequency(rawValue: Int($0)) }
    }
  }

  /// Whether the camera can suppress flicker at a mains frequency.
  public func isPowerLineFrequencySupported(_ frequency: PowerLineFrequency) -> Bool {
    camera.has(.powerLineFrequency, item: Int64(frequency.rawValue))
  }

  /// Sets the mains frequency for flicker suppression: `V4L2_CID_POWER_LINE_FREQUENCY`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks the control or the
  ///   frequency.
  public func setPowerLineFrequency(_ frequency: PowerLineFrequency) throws(MediaError) {
    guard isPowerLineFrequencySupported(frequency) else {
      throw camera.missing("power line frequency \(frequency)")
    }
    try camera.set(.powerLineFrequency, Int64(frequency.rawValue))
  }

  /// Whether the privacy shutter is closed, which makes all frames black.
  ///
  /// Nil where the camera does not report it. The source is `V4L2_CID_PRIVACY`.
  public var isPrivacyShutterClosed: Bool? {
    get throws(MediaError) { try flag(.privacy) }
  }

  /// Whether the image is mirrored left to right, or nil where the camera cannot mirror.
  public var isVideoMirrored: Bool? {
    get throws(MediaError) {
      guard let isMirrored = try flag(.isMirrored) else { return nil }
      // A camera that flips in both directions rotates the image by 180 degrees. That is not a
      // mirroring.
      return try isMirrored != (flag(.isFlipped) ?? false)
    }
  }

  /// Switches left-to-right mirroring on or off and keeps the rotation: `V4L2_CID_HFLIP`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`, or `.deviceBusy` from cameras that cannot
  ///   change mirroring while they stream.
  public func setVideoMirrored(_ isMirrored: Bool) throws(MediaError) {
    try camera.set(.isMirrored, isMirrored != (flag(.isFlipped) ?? false) ? 1 : 0)
  }

  /// The clockwise rotation of the image, from 0 to 359 degrees.
  ///
  /// Nil where the camera cannot rotate the image.
  public var videoRotationAngle: Int64? {
    get throws(MediaError) {
      let rotated = try camera.number(.rotation)
      let isFlipped = try flag(.isFlipped)
      guard rotated != nil || (isFlipped != nil && camera.has(.isMirrored)) else { return nil }
      return (((rotated ?? 0) % 360) + (isFlipped == true ? 540 : 360)) % 360
    }
  }

  /// Whether the camera can rotate the image clockwise by an angle in degrees.
  public func isVideoRotationAngleSupported(_ angle: Int64) -> Bool {
    if let control = try? camera.find(.rotation) {
      return control.minimum <= angle && angle <= control.maximum
        && control.nearestValue(to: angle) == angle
    }
    return (angle == 0 || angle == 180) && camera.has(.isMirrored) && camera.has(.isFlipped)
  }

  /// Rotates the image and keeps its mirroring.
  ///
  /// Uses `V4L2_CID_ROTATE`, or `V4L2_CID_HFLIP` and `V4L2_CID_VFLIP` together. A rotation by 90 or
  /// 270 degrees may change the frame size.
  ///
  /// - Parameter angle: The clockwise rotation, in degrees.
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks the angle, or
  ///   `.deviceBusy` from cameras that cannot rotate while they stream.
  public func setVideoRotationAngle(_ angle: Int64) throws(MediaError) {
    guard isVideoRotationAngleSupported(angle) else {
      throw camera.missing("rotation by \(angle) degrees")
    }
    let isMirrored = try isVideoMirrored ?? false
    let canRotate = camera.has(.rotation)
    let isFlipped = !canRotate && angle == 180
    if canRotate { try camera.set(.rotation, angle) }
    try camera.setIfPresent(.isFlipped, isFlipped ? 1 : 0)
    try camera.setIfPresent(.isMirrored, isMirrored != isFlipped ? 1 : 0)
  }

  /// Whether an on/off control is on, or nil if the device lacks the control.
  private func flag(_ id: ControlID) throws(MediaError) -> Bool? {
    try camera.number(id).map { $0 != 0 }
  }
}

// USB cameras have only one region of interest, with one bit for each automatic mode that uses it.
// The exposure point and the focus point below are therefore always equal.
extension CameraControls {
  /// A bit of `V4L2_CID_UVC_REGION_OF_INTEREST_AUTO`: an automatic mode that can use the region of
  /// interest.
  private struct Automatic {
    let bit: Int64
    static let exposure = Automatic(bit: ControlBit.regionExposure)
    static let focus = Automatic(bit: ControlBit.regionFocus)
  }

  /// Whether automatic exposure supports a point of interest.
  public var isExposurePointOfInterestSupported: Bool { canLook(.exposure) }

  /// Whether autofocus supports a point of interest.
  public var isFocusPointOfInterestSupported: Bool { canLook(.focus) }

  /// The center of the region that automatic exposure measures, or nil if it measures the whole
  /// image.
  public var exposurePointOfInterest: Point? {
    get throws(MediaError) { try point(.exposure) }
  }

  /// The center of the region that autofocus measures, or nil if it measures the whole image.
  public var focusPointOfInterest: Point? {
    get throws(MediaError) { try point(.focus) }
  }

  /// Sets the region that automatic exposure measures.
  ///
  /// The region is a quarter of the image's width and height, around the point. The center,
  /// ``Point/center``, selects the whole image again. If this program captures from the
  /// camera, the previous region is restored when the stream ends. Otherwise the region stays set.
  ///
  /// Uses `V4L2_CID_UVC_REGION_OF_INTEREST_RECT` and `…_AUTO`, of Linux 6.15 and later. If
  /// autofocus uses the region too, its region changes as well, because the camera has only one.
  ///
  /// - Throws: `MediaError` with `.controlOutOfRange` for a point outside the image, or
  ///   `.controlNotSupported`.
  public func setExposurePointOfInterest(_ point: Point) throws(MediaError) {
    try look(at: point, .exposure)
  }

  /// Sets the region that autofocus measures, as ``setExposurePointOfInterest(_:)`` does.
  ///
  /// - Throws: `MediaError` with `.controlOutOfRange` for a point outside the image, or
  ///   `.controlNotSupported`.
  public func setFocusPointOfInterest(_ point: Point) throws(MediaError) {
    try look(at: point, .focus)
  }

  private func canLook(_ automatic: Automatic) -> Bool {
    guard camera.has(.regionOfInterest), let control = try? camera.find(.regionOfInterestAutomatics)
    else {
      return false
    }
    return control.maximum & automatic.bit != 0
  }

  private func point(_ automatic: Automatic) throws(MediaError) -> Point? {
    guard let control = try camera.find(.regionOfInterest),
      let bits = try camera.number(.regionOfInterestAutomatics), bits & automatic.bit != 0,
      case .rectangle(let region) = try camera.value(control),
      let whole = try wholeRegion(control)
    else { return nil }
    let x = Double(region.x) - Double(whole.x) + Double(region.width) / 2
    let y = Double(region.y) - Double(whole.y) + Double(region.height) / 2
    return Point(x: x / Double(whole.width), y: y / Double(whole.height))
  }

  private func look(at point: Point, _ automatic: Automatic) throws(MediaError) {
    guard canLook(automatic) else { throw camera.missing("region of interest") }
    guard (0...1).contains(point.x), (0...1).contains(point.y) else {
      throw camera.outOfRange("the point of interest", "(\(point.x), \(point.y))", takes: "0 to 1")
    }
    let control = try camera.require(.regionOfInterest)
    guard let node = camera.ownNode, let whole = try wholeRegion(control) else {
      throw camera.missing("region of interest")
    }
    let automatics = try camera.require(.regionOfInterestAutomatics)
    let bits = try camera.value(automatics).number ?? 0
    guard point != .center else {
      let others = bits & ~automatic.bit
      try node.setDuringCapture(automatics, to: .number(others))
      // All automatic modes share the camera's only region. The region is therefore reset to the
      // whole image only if no other automatic mode uses it.
      if others == 0 { try node.setDuringCapture(control, to: .rectangle(whole)) }
      return
    }
    let (left, width) = Self.part(of: whole.width, from: whole.x, about: point.x)
    let (top, height) = Self.part(of: whole.height, from: whole.y, about: point.y)
    let region = PixelRect(x: left, y: top, width: width, height: height)
    try node.setDuringCapture(control, to: .rectangle(region))
    try node.setDuringCapture(automatics, to: .number(bits | automatic.bit))
  }

  /// A range of pixels that spans a quarter of the image's width or height.
  ///
  /// The range is centered on the point, but moved where needed to lie inside the image.
  private static func part(
    of side: Int, from start: Int, about center: Double
  ) -> (start: Int, length: Int) {
    let length = max(side / 4, 1)
    let middle = Double(side) * center
    let offset = (middle - Double(length) / 2).rounded()
    let inside = min(max(offset, 0), Double(side - length))
    return (start + Int(inside), length)
  }

  /// The region that covers the whole image, or nil if the driver does not report one.
  private func wholeRegion(_ control: DeviceControl) throws(MediaError) -> PixelRect? {
    guard let node = camera.ownNode else { return nil }
    // Older kernels do not report the maximum of the region of interest. Its default value is then
    // used, because that is the whole image.
    for kind in [ControlValueKind.maximum, .default] {
      let answer = try? node.use { device throws(CallFailure) in try device.value(of: control, kind)
      }
      if case .rectangle(let whole) = answer, whole.width > 0, whole.height > 0 { return whole }
    }
    return nil
  }
}

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
