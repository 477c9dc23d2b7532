// SPDX-License-Identifier: Apache-2.0

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
  private let zoomRamp: ZoomRamp
  private let automaticValues: AutomaticValues
  private let storedFlashMode = Mutex(FlashMode.off)
  /// The exposure that ``ExposureMode/locked`` set manually, because the camera has no exposure
  /// lock.
  ///
  /// Nil if exposure is not locked in this way.
  private let lockedExposure = Mutex<ExposureSetting?>(nil)

  /// Opens a device to control it.
  ///
  /// - Parameter device: The camera, which may be capturing.
  /// - Throws: `MediaError` with `.deviceLost`, `.noPermission`.
  public convenience init(device: CaptureDevice) throws(MediaError) {
    self.init(try ControlledCamera(device))
  }

  /// Opens a device node to control it.
  ///
  /// Tests replace the wait between two readings of an automatic value.
  package convenience init(
    path: String, waitForChoice: @escaping @Sendable () -> Void = AutomaticValues.pause
  ) throws(MediaError) {
    self.init(try ControlledCamera(path: path), waitForChoice)
  }

  private init(
    _ camera: ControlledCamera,
    _ waitForChoice: @escaping @Sendable () -> Void = AutomaticValues.pause
  ) {
    self.camera = camera
    torch = TorchControl(camera)
    zoomRamp = ZoomRamp(camera)
    automaticValues = AutomaticValues(camera, waitForChoice)
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

  private func read<Value>(_ property: CameraProperty<Value>) throws(MediaError) -> Value? {
    try camera.read(property)
  }

  // MARK: - Automatic adjustments

  /// Whether the lens is moving to focus, or nil where the camera does not report it.
  ///
  /// The source is `V4L2_CID_AUTO_FOCUS_STATUS` or, on the many cameras without it, the lens position
  /// that continuous autofocus chose. The position is read twice, 100 ms apart, and the call waits for
  /// that time. Nil if no reading of the position has differed from an earlier one, because the driver
  /// may not ask the camera for it.
  public var isAdjustingFocus: Bool? {
    get throws(MediaError) {
      if let status = try camera.number(.automaticFocusStatus) {
        return status & ControlBit.focusIsBusy != 0
      }
      return try automaticValues.isChanging(.focus)
    }
  }

  /// Whether automatic exposure is still changing, or nil where the camera does not report the
  /// exposure duration that it chose.
  ///
  /// The duration is read twice, 100 ms apart. The call waits for that time. With a driver that may
  /// answer with an old value, such as `uvcvideo`, it is also nil if no reading has differed from an
  /// earlier one of this object.
  public var isAdjustingExposure: Bool? {
    get throws(MediaError) { try automaticValues.isChanging(.exposure) }
  }

  /// Whether automatic white balance is still changing, or nil where the camera does not report the
  /// color temperature that it chose.
  ///
  /// The temperature is read twice, 100 ms apart, with the same restriction as for
  /// ``isAdjustingExposure``. The call waits for that time.
  public var isAdjustingWhiteBalance: Bool? {
    get throws(MediaError) { try automaticValues.isChanging(.whiteBalance) }
  }

  // MARK: - Exposure

  /// Whether the camera supports an exposure mode.
  public func isExposureModeSupported(_ mode: ExposureMode) -> Bool {
    switch mode {
    case .locked: camera.supports(.locked, of: .exposure)
    case .autoExpose: false
    case .continuousAutoExposure: camera.supports(.continuous, of: .exposure)
    case .custom: camera.has(.exposureDuration)
    }
  }

  /// The current exposure mode, or nil where the camera does not report one.
  ///
  /// A camera with manual exposure reports ``ExposureMode/custom``, even if another program set it.
  /// After ``setExposureMode(_:)`` with `.locked`, the mode stays ``ExposureMode/locked`` while the
  /// camera keeps the locked values.
  public var exposureMode: ExposureMode? {
    get throws(MediaError) {
      if try camera.isLocked(.exposure) { return .locked }
      let isAutomatic = try read(AutomaticAdjustment.exposure.isOn)
      if isAutomatic == true { return .continuousAutoExposure }
      guard isAutomatic == false || camera.has(.exposureDuration) else { return nil }
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
    switch mode {
    case .locked where camera.canLock(.exposure): try camera.set(.locked, of: .exposure)
    case .locked:
      let held = try setManualExposure(nil, nil)
      lockedExposure.withLock { $0 = held }
      return
    case .custom: try setManualExposure(nil, nil)
    case .continuousAutoExposure: try camera.set(.continuous, of: .exposure)
    case .autoExpose: return
    }
    lockedExposure.withLock { $0 = nil }
  }

  /// The exposure duration and gain in effect, set manually or chosen by the camera.
  public var exposure: ExposureSetting {
    get throws(MediaError) {
      ExposureSetting(duration: try read(.exposureDuration), gain: try read(.gain))
    }
  }

  /// The exposure time of each frame, or nil where the camera does not report it.
  public var exposureDuration: MediaTime? { get throws(MediaError) { try read(.exposureDuration) } }

  /// The exposure durations that the camera supports, or nil where duration cannot be set.
  ///
  /// Some cameras change this range with the frame rate. An exposure longer than the frame duration
  /// lowers the frame rate.
  public var exposureDurationRange: ClosedRange<MediaTime>? {
    get throws(MediaError) { try camera.range(of: .exposureDuration) }
  }

  /// The gains that the camera supports, in the driver's unit, or nil where gain cannot be set.
  public var gainRange: ClosedRange<Int64>? {
    get throws(MediaError) { try camera.range(of: .gain) }
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
    _ = try camera.require(.exposureTime)
    let held = try setManualExposure(duration, gain, rounding)
    lockedExposure.withLock { $0 = nil }
    return held
  }

  /// Sets the values, or those that automatic exposure chose, and returns what the driver reports.
  @discardableResult
  private func setManualExposure(
    _ duration: MediaTime?, _ gain: Int64?, _ rounding: TimeRounding = .halfAwayFromZero
  ) throws(MediaError) -> ExposureSetting {
    // Both values are checked before one is set. The automatic values are read before the switch to
    // manual exposure, because the switch restores the last manual values.
    let settings = [
      try setting(.exposureDuration, duration, rounding), try setting(.gain, gain, rounding),
    ]
    try camera.switchOff(.exposure)
    for case let (control, number)? in settings { try camera.set(control, number) }
    return try exposure
  }

  /// The setting of a property to a value or, for nil, to the number that it has now.
  ///
  /// Nil if there is no value and the camera lacks the property.
  private func setting<Value>(
    _ property: CameraProperty<Value>, _ value: Value?, _ rounding: TimeRounding
  ) throws(MediaError) -> (control: DeviceControl, number: Int64)? {
    if let value { return try camera.setting(property, value, rounding: rounding) }
    guard let control = try camera.find(property) else { return nil }
    return try camera.value(control).number.map { (control, control.nearestValue(to: $0)) }
  }

  /// The ISO values that the camera supports, in menu order.
  ///
  /// Empty where ISO cannot be set.
  public var isoValues: [Double] { get throws(MediaError) { try camera.values(of: .iso) } }

  /// The current ISO value, or nil where the camera does not report it.
  public var iso: Double? { get throws(MediaError) { try read(.iso) } }

  /// Sets the ISO value manually: `V4L2_CID_ISO_SENSITIVITY`.
  ///
  /// - Parameter iso: One of ``isoValues``.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setISO(_ iso: Double) throws(MediaError) { try camera.write(.iso, iso) }

  /// The exposure compensation, in thousandths of an EV.
  ///
  /// Positive values are brighter: 1000 doubles the light. Nil where the camera has no
  /// compensation.
  public var exposureTargetBias: Int64? { get throws(MediaError) { try read(.exposureBias) } }

  /// The supported exposure compensations, in thousandths of an EV, darkest first.
  ///
  /// For a camera whose control is a range and not a menu, contains only the smallest and the
  /// greatest value. Empty if the camera has no compensation.
  public var exposureTargetBiases: [Int64] {
    get throws(MediaError) { try camera.values(of: .exposureBias).sorted() }
  }

  /// Sets the exposure compensation: `V4L2_CID_AUTO_EXPOSURE_BIAS`.
  ///
  /// - Parameter bias: Thousandths of an EV. The nearest supported value is set.
  /// - Returns: The compensation then in effect, in thousandths of an EV.
  /// - Throws: `MediaError` with `.controlOutOfRange` beyond the supported limits, or
  ///   `.controlNotSupported`.
  @discardableResult
  public func setExposureTargetBias(_ bias: Int64) throws(MediaError) -> Int64 {
    try camera.write(.exposureBias, bias)
  }
}

// A camera's LED usually has a separate device node, `/dev/v4l-subdev…`, in the same media device.
// The camera's own node then has no LED controls. The LED's node is opened when a light is first
// used, or when all controls are listed. It stays open, because some drivers switch the LED off
// when its last handle is closed.
extension CameraControls {
  /// Whether the camera has a torch whose device node this user may open.
  public var hasTorch: Bool { camera.has(.torch) }

  /// Whether the camera has a flash whose device node this user may open.
  public var hasFlash: Bool { camera.has(.flash) }

  /// Whether the torch is lit now, or nil if the camera has none.
  public var isTorchActive: Bool? { get throws(MediaError) { try read(.torch) } }

  /// The torch brightness from 0 to 1, or nil if the camera has no torch.
  ///
  /// The value is 0 while the torch is off. It is 1 for a lit torch without adjustable brightness.
  public var torchLevel: Double? {
    get throws(MediaError) {
      guard let isActive = try isTorchActive else { return nil }
      return isActive ? try read(.torchLevel) ?? 1 : 0
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
    if hasFlash { try camera.write(.flash, true) }
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
  public var isVideoZoomSupported: Bool { camera.has(.zoomFactor) }

  /// The zoom relative to the camera's smallest zoom, or nil where the camera cannot zoom.
  ///
  /// The factor is the value of `V4L2_CID_ZOOM_ABSOLUTE` divided by the control's minimum. The unit
  /// of the control is driver-specific. If the minimum is zero or less, the quotient has no
  /// meaning, and the camera counts as one without zoom. The control can then still be set by name.
  public var videoZoomFactor: Double? { get throws(MediaError) { try read(.zoomFactor) } }

  /// The supported zoom factors, from 1, or nil where the camera cannot zoom.
  public var videoZoomFactorRange: ClosedRange<Double>? {
    get throws(MediaError) { try camera.range(of: .zoomFactor) }
  }

  /// Sets the zoom at once and cancels a running ramp.
  ///
  /// - Parameter factor: A factor in ``videoZoomFactorRange``. The nearest supported value is set.
  /// - Returns: The zoom factor then in effect.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  @discardableResult
  public func setVideoZoomFactor(_ factor: Double) throws(MediaError) -> Double {
    _ = try camera.setting(.zoomFactor, factor)
    zoomRamp.cancel()
    return try camera.write(.zoomFactor, factor)
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
    try zoomRamp.start(to: factor, rate: rate, clock)
  }

  /// Stops a running ramp at its current factor.
  ///
  /// Does nothing if no ramp is running.
  public func cancelVideoZoomRamp() { zoomRamp.cancel() }
}

extension CameraControls {
  /// Whether the camera supports a white balance mode.
  public func isWhiteBalanceModeSupported(_ mode: WhiteBalanceMode) -> Bool {
    camera.supports(mode.adjustment, of: .whiteBalance)
  }

  /// The current white balance mode, or nil where the camera does not report one.
  public var whiteBalanceMode: WhiteBalanceMode? {
    get throws(MediaError) {
      if try camera.isLocked(.whiteBalance) { return .locked }
      return try read(AutomaticAdjustment.whiteBalance.isOn).map {
        $0 ? .continuousAutoWhiteBalance : .locked
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
    try camera.set(mode.adjustment, of: .whiteBalance)
  }

  /// The color temperature of the light that appears white, in kelvin, or nil where the camera does
  /// not report it.
  public var whiteBalanceTemperature: Int64? { get throws(MediaError) { try read(.temperature) } }

  /// The supported color temperatures, in kelvin, or nil where the temperature cannot be set.
  public var whiteBalanceTemperatureRange: ClosedRange<Int64>? {
    get throws(MediaError) { try camera.range(of: .temperature) }
  }

  /// Sets the color temperature manually: `V4L2_CID_WHITE_BALANCE_TEMPERATURE`.
  ///
  /// - Parameter temperature: The color temperature in kelvin. The nearest supported value is set.
  /// - Returns: The color temperature then in effect, in kelvin.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  @discardableResult
  public func setWhiteBalanceModeLocked(temperature: Int64) throws(MediaError) -> Int64 {
    try camera.write(.temperature, temperature)
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
    camera.supports(.focusRange, restriction)
  }

  /// The distances that autofocus searches, or nil where the camera lacks the control.
  public var autoFocusRangeRestriction: AutoFocusRangeRestriction? {
    get throws(MediaError) { try read(.focusRange) }
  }

  /// Restricts the distances that autofocus searches: `V4L2_CID_AUTO_FOCUS_RANGE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks the control or the
  ///   restriction.
  public func setAutoFocusRangeRestriction(
    _ restriction: AutoFocusRangeRestriction
  ) throws(MediaError) {
    try camera.write(.focusRange, restriction)
  }

  /// Whether the camera supports a focus mode.
  public func isFocusModeSupported(_ mode: FocusMode) -> Bool {
    camera.supports(mode.adjustment, of: .focus) || (mode == .locked && camera.has(ControlID.focus))
  }

  /// The current focus mode, or nil for a camera with fixed focus.
  public var focusMode: FocusMode? {
    get throws(MediaError) {
      if try read(AutomaticAdjustment.focus.isOn) == true {
        return try camera.isLocked(.focus) ? .locked : .continuousAutoFocus
      }
      if try isAdjustingFocus == true { return .autoFocus }
      return isFocusModeSupported(.locked) ? .locked : nil
    }
  }

  /// Sets the focus mode: `V4L2_CID_FOCUS_AUTO`, `V4L2_CID_AUTO_FOCUS_START`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` for a mode that the camera lacks.
  public func setFocusMode(_ mode: FocusMode) throws(MediaError) {
    guard isFocusModeSupported(mode) else { throw camera.missing("focus mode \(mode.rawValue)") }
    if mode == .locked, camera.supports(AutomaticAdjustment.focus.isOn, false) {
      try camera.write(AutomaticAdjustment.focus.isOn, false)
    } else {
      try camera.set(mode.adjustment, of: .focus)
    }
  }

  /// Whether the lens position can be set manually.
  public var isLockingFocusWithLensPositionSupported: Bool { camera.has(.lensPosition) }

  /// The lens position, from 0 (closest focus) to 1 (farthest focus).
  ///
  /// Nil where the camera does not report the position. `V4L2_CID_FOCUS_ABSOLUTE` uses a
  /// driver-specific unit in which greater values are closer.
  public var lensPosition: Double? { get throws(MediaError) { try read(.lensPosition) } }

  /// Switches autofocus off and moves the lens: `V4L2_CID_FOCUS_ABSOLUTE`.
  ///
  /// - Parameter lensPosition: From 0 (closest focus) to 1 (farthest focus). The nearest position
  ///   that the driver supports is set.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setFocusModeLocked(lensPosition: Double) throws(MediaError) {
    try camera.write(.lensPosition, lensPosition)
  }
}

extension CameraControls {
  /// Whether automatic exposure may lower the frame rate in low light.
  ///
  /// Set this to false for a steady frame rate; many webcams start with true. Nil where the camera
  /// lacks the control. ``isLowLightBoostEnabled`` is a different control, which does not change
  /// the frame rate.
  public var isAutoVideoFrameRateEnabled: Bool? {
    get throws(MediaError) { try read(.mayLowerFrameRate) }
  }

  /// Allows automatic exposure to lower the frame rate: `V4L2_CID_EXPOSURE_AUTO_PRIORITY`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`. Some cameras accept the change only while
  ///   exposure is automatic; others throw `.controlOutOfRange` or `.deviceFailed`.
  public func setAutoVideoFrameRateEnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.write(.mayLowerFrameRate, isEnabled)
  }

  /// Whether the camera has a scene mode for low light.
  public var isLowLightBoostSupported: Bool { camera.has(.lowLight) }

  /// Whether the scene mode for low light is on, or nil where the camera lacks it.
  ///
  /// Corresponds to `automaticallyEnablesLowLightBoostWhenAvailable`.
  public var isLowLightBoostEnabled: Bool? { get throws(MediaError) { try read(.lowLight) } }

  /// Switches the scene mode for low light on or off: `V4L2_CID_SCENE_MODE`.
  ///
  /// Low-light boost does not decide whether the camera may lower its frame rate.
  /// ``setAutoVideoFrameRateEnabled(_:)`` does.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setLowLightBoostEnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.write(.lowLight, isEnabled)
  }

  /// Whether the camera extends its dynamic range (HDR), or nil where it cannot.
  ///
  /// Many cameras combine two exposures for this, which lowers the frame rate. Use false for high
  /// frame rates.
  public var isVideoHDREnabled: Bool? { get throws(MediaError) { try read(.hdr) } }

  /// Switches the extended dynamic range (HDR) on or off: `V4L2_CID_WIDE_DYNAMIC_RANGE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setVideoHDREnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.write(.hdr, isEnabled)
  }

  /// Whether the camera stabilizes the image, or nil where it cannot.
  public var isVideoStabilizationEnabled: Bool? {
    get throws(MediaError) { try read(.stabilization) }
  }

  /// Switches image stabilization on or off: `V4L2_CID_IMAGE_STABILIZATION`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setVideoStabilizationEnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.write(.stabilization, isEnabled)
  }

  /// The flicker suppression for mains light, or nil where the camera does not report it.
  ///
  /// Flicker suppression restricts the exposure durations that automatic exposure may choose.
  public var powerLineFrequency: PowerLineFrequency? {
    get throws(MediaError) { try read(.powerLine) }
  }

  /// Whether the camera can suppress flicker at a mains frequency.
  public func isPowerLineFrequencySupported(_ frequency: PowerLineFrequency) -> Bool {
    camera.supports(.powerLine, frequency)
  }

  /// Sets the mains frequency for flicker suppression: `V4L2_CID_POWER_LINE_FREQUENCY`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks the control or the
  ///   frequency.
  public func setPowerLineFrequency(_ frequency: PowerLineFrequency) throws(MediaError) {
    try camera.write(.powerLine, frequency)
  }

  /// Whether the privacy shutter is closed, which makes all frames black.
  ///
  /// Nil where the camera does not report it. The source is `V4L2_CID_PRIVACY`.
  public var isPrivacyShutterClosed: Bool? { get throws(MediaError) { try read(.privacy) } }

  /// Whether the image is mirrored left to right, or nil where the camera cannot mirror.
  public var isVideoMirrored: Bool? {
    get throws(MediaError) {
      guard let isMirrored = try read(.isMirrored) else { return nil }
      // A camera that flips in both directions rotates the image by 180 degrees. That is not a
      // mirroring.
      return try isMirrored != (read(.isFlipped) ?? false)
    }
  }

  /// Switches left-to-right mirroring on or off and keeps the rotation: `V4L2_CID_HFLIP`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`, or `.deviceBusy` from cameras that cannot
  ///   change mirroring while they stream.
  public func setVideoMirrored(_ isMirrored: Bool) throws(MediaError) {
    try camera.write(.isMirrored, isMirrored != (read(.isFlipped) ?? false))
  }

  /// The clockwise rotation of the image, from 0 to 359 degrees.
  ///
  /// Nil where the camera cannot rotate the image.
  public var videoRotationAngle: Int64? {
    get throws(MediaError) {
      let rotated = try read(.rotation)
      let isFlipped = try read(.isFlipped)
      guard rotated != nil || (isFlipped != nil && camera.has(ControlID.isMirrored)) else {
        return nil
      }
      return (((rotated ?? 0) % 360) + (isFlipped == true ? 540 : 360)) % 360
    }
  }

  /// Whether the camera can rotate the image clockwise by an angle in degrees.
  public func isVideoRotationAngleSupported(_ angle: Int64) -> Bool {
    if camera.has(ControlID.rotation) { return camera.supports(.rotation, angle) }
    return (angle == 0 || angle == 180) && camera.has(ControlID.isMirrored)
      && camera.has(ControlID.isFlipped)
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
    let isMirrored = try isVideoMirrored ?? false
    let canFlip = !camera.has(ControlID.rotation) && isVideoRotationAngleSupported(angle)
    let isFlipped = canFlip && angle == 180
    if !canFlip { try camera.write(.rotation, angle) }
    try camera.setIfPresent(.isFlipped, isFlipped ? 1 : 0)
    try camera.setIfPresent(.isMirrored, isMirrored != isFlipped ? 1 : 0)
  }
}

extension CameraControls {
  private var exposureRegion: RegionOfInterest {
    RegionOfInterest(camera, ofMode: ControlBit.regionExposure)
  }
  private var focusRegion: RegionOfInterest {
    RegionOfInterest(camera, ofMode: ControlBit.regionFocus)
  }

  /// Whether automatic exposure supports a point of interest.
  public var isExposurePointOfInterestSupported: Bool { exposureRegion.isSupported }

  /// Whether autofocus supports a point of interest.
  public var isFocusPointOfInterestSupported: Bool { focusRegion.isSupported }

  /// The center of the region that automatic exposure measures, or nil if it measures the whole
  /// image.
  public var exposurePointOfInterest: Point? {
    get throws(MediaError) { try exposureRegion.center }
  }

  /// The center of the region that autofocus measures, or nil if it measures the whole image.
  public var focusPointOfInterest: Point? { get throws(MediaError) { try focusRegion.center } }

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
    try exposureRegion.set(to: point)
  }

  /// Sets the region that autofocus measures, as ``setExposurePointOfInterest(_:)`` does.
  ///
  /// - Throws: `MediaError` with `.controlOutOfRange` for a point outside the image, or
  ///   `.controlNotSupported`.
  public func setFocusPointOfInterest(_ point: Point) throws(MediaError) {
    try focusRegion.set(to: point)
  }
}
