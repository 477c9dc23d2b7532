// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

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
    case .custom: has(.exposureTime)
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
      if let mode = try number(.automaticExposure) {
        guard ControlID.automaticExposure.isManual(at: mode) else { return .continuousAutoExposure }
      } else if !has(.exposureTime) {
        return nil
      }
      guard let locked = state.withLock({ $0.lockedExposure }) else { return .custom }
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
    guard isExposureModeSupported(mode) else { throw missing("exposure mode \(mode.rawValue)") }
    state.withLock { $0.lockedExposure = nil }
    switch mode {
    case .locked where canLock(.exposure): try setLock(.exposure, true)
    case .locked, .custom:
      // The automatic values are read before the switch to manual exposure, because the switch
      // restores the last manual values.
      let chosen = try exposure
      try setByHand()
      if let duration = chosen.duration?.value, let control = try find(.exposureTime) {
        try set(control, control.nearestValue(to: duration))
      }
      if let gain = chosen.gain, let control = try gainControl {
        try set(control, control.nearestValue(to: gain))
      }
      guard mode == .locked else { return }
      let held = try exposure
      state.withLock { $0.lockedExposure = held }
    case .continuousAutoExposure:
      guard let item = automaticExposureItem else { return }
      try setLock(.exposure, false)
      try set(.automaticExposure, item)
      try setIfPresent(.automaticGain, 1)
    case .autoExpose: return
    }
  }

  /// The exposure duration and gain in effect, set manually or chosen by the camera.
  public var exposure: ExposureSetting {
    get throws(MediaError) {
      let gain: Int64? =
        if let control = try gainControl { try value(control).number } else { nil }
      return ExposureSetting(duration: try exposureDuration, gain: gain)
    }
  }

  /// The exposure time of each frame, or nil where the camera does not report it.
  public var exposureDuration: MediaTime? {
    get throws(MediaError) {
      try number(.exposureTime).flatMap(Self.duration)
    }
  }

  /// The exposure durations that the camera supports, or nil where duration cannot be set.
  ///
  /// Some cameras change this range with the frame rate. An exposure longer than the frame duration
  /// lowers the frame rate.
  public var exposureDurationRange: ClosedRange<MediaTime>? {
    get throws(MediaError) {
      guard let control = try find(.exposureTime), control.minimum <= control.maximum else {
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
    let time = try require(.exposureTime)
    let units = try duration.map { duration throws(MediaError) in
      try exposureUnits(duration, rounding, time)
    }
    if let gain {
      guard let control = try gainControl else { throw missing("gain") }
      guard control.minimum <= gain, gain <= control.maximum else {
        throw outOfRange(
          "the gain", "\(gain)", takes: "\(control.minimum) to \(control.maximum)")
      }
    }
    let chosen = try exposure
    state.withLock { $0.lockedExposure = nil }
    try setByHand()
    if let units = units ?? chosen.duration?.value {
      try set(time, time.nearestValue(to: units))
    }
    if let gain = gain ?? chosen.gain, let control = try gainControl {
      try set(control, control.nearestValue(to: gain))
    }
    return try exposure
  }

  /// The ISO values that the camera supports, in menu order.
  ///
  /// Empty where ISO cannot be set.
  public var isoValues: [Double] {
    get throws(MediaError) {
      try find(.isoSensitivity)?.menu.compactMap(\.number).map { Double($0) / 1000 } ?? []
    }
  }

  /// The current ISO value, or nil where the camera does not report it.
  public var iso: Double? {
    get throws(MediaError) {
      guard let control = try find(.isoSensitivity) else { return nil }
      let index = try value(control).number
      return control.menu.first { $0.index == index }?.number.map { Double($0) / 1000 }
    }
  }

  /// Sets the ISO value manually: `V4L2_CID_ISO_SENSITIVITY`.
  ///
  /// - Parameter iso: One of ``isoValues``.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setISO(_ iso: Double) throws(MediaError) {
    let control = try require(.isoSensitivity)
    guard let item = control.menu.first(where: { $0.number.map { Double($0) / 1000 } == iso })
    else {
      let list = try isoValues.map(\.description).joined(separator: ", ")
      throw outOfRange("the ISO value", "\(iso)", takes: list)
    }
    try setIfPresent(.automaticISO, 0)
    try set(control, item.index)
  }

  /// The exposure compensation, in thousandths of an EV.
  ///
  /// Positive values are brighter: 1000 doubles the light. Nil where the camera has no
  /// compensation.
  public var exposureTargetBias: Int64? {
    get throws(MediaError) {
      guard let control = try find(.exposureBias) else { return nil }
      let held = try value(control).number
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
      guard let control = try find(.exposureBias) else { return [] }
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
    let control = try require(.exposureBias)
    let offered = try exposureTargetBiases
    guard let darkest = offered.first, let brightest = offered.last, darkest <= bias,
      bias <= brightest
    else {
      throw outOfRange(
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
    try set(control, control.nearestValue(to: wanted))
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
      throw outOfRange(
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
    if let item = manualExposureItem { try set(.automaticExposure, item) }
    try setIfPresent(.automaticGain, 0)
  }

  /// The camera's general gain control or, if it has none, the sensor's analog gain.
  private var gainControl: DeviceControl? {
    get throws(MediaError) {
      if let control = try find(.gain) { return control }
      return try find(.analogueGain)
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
    [first, second].first { has(.automaticExposure, item: $0) }
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
