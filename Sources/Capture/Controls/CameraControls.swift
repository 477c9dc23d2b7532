// SPDX-License-Identifier: Apache-2.0

public import OvercrankDeviceDiscovery
public import OvercrankMediaCore
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
}

extension CameraControls {
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
}

extension CameraControls {
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
  static func duration(_ units: Int64) -> MediaTime {
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
}

extension CameraControls {
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
}

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
