// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

extension CameraControls {
  /// The unit of `V4L2_CID_EXPOSURE_ABSOLUTE` is 100 µs.
  static let exposureTimescale: Int32 = 10_000

  /// Whether the camera has a mode of exposure.
  public func isExposureModeSupported(_ mode: ExposureMode) -> Bool {
    switch mode {
    case .locked: canLock(.exposure) || manualExposureItem != nil
    case .autoExpose: false
    case .continuousAutoExposure: automaticExposureItem != nil
    case .custom: has(.exposureTime)
    }
  }

  /// The mode of exposure, or nil where the camera does not say.
  ///
  /// A camera set by hand says ``ExposureMode/custom``, whoever set it.
  public var exposureMode: ExposureMode? {
    get throws(MediaError) {
      if try isLocked(.exposure) { return .locked }
      guard let mode = try number(.automaticExposure) else {
        return has(.exposureTime) ? .custom : nil
      }
      return ControlID.automaticExposure.isManual(at: mode) ? .custom : .continuousAutoExposure
    }
  }

  /// Sets the mode of exposure: `V4L2_CID_EXPOSURE_AUTO`, `V4L2_CID_3A_LOCK`.
  ///
  /// Where the camera has no lock, locking sets by hand what the camera had chosen.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` for a mode that the camera has not.
  public func setExposureMode(_ mode: ExposureMode) throws(MediaError) {
    guard isExposureModeSupported(mode) else { throw missing("exposure mode \(mode.rawValue)") }
    switch mode {
    case .locked where canLock(.exposure): try setLock(.exposure, true)
    case .locked, .custom:
      // The camera's choice is read first: by hand it would go back to what was set before.
      let chosen = try exposure
      try setByHand()
      if let duration = chosen.duration?.value, let control = try find(.exposureTime) {
        try set(control, control.nearestValue(to: duration))
      }
      if let gain = chosen.gain, let control = try gainControl {
        try set(control, control.nearestValue(to: gain))
      }
    case .continuousAutoExposure:
      guard let item = automaticExposureItem else { return }
      try setLock(.exposure, false)
      try set(.automaticExposure, item)
      try setIfPresent(.automaticGain, 1)
    case .autoExpose: return
    }
  }

  /// What is in force: the duration and gain that were set, or that the camera has chosen.
  public var exposure: ExposureSetting {
    get throws(MediaError) {
      let gain: Int64? =
        if let control = try gainControl { try value(control).number } else { nil }
      return ExposureSetting(duration: try exposureDuration, gain: gain)
    }
  }

  /// How long each frame is exposed, exactly, or nil where the camera does not say.
  public var exposureDuration: MediaTime? {
    get throws(MediaError) {
      try number(.exposureTime).flatMap(Self.duration)
    }
  }

  /// The durations that the camera takes; nil where it takes none.
  ///
  /// Some cameras change it with the frame rate, and none exposes longer than a frame lasts
  /// without losing the rate.
  public var exposureDurationRange: ClosedRange<MediaTime>? {
    get throws(MediaError) {
      guard let control = try find(.exposureTime), control.minimum <= control.maximum else {
        return nil
      }
      return Self.duration(control.minimum)...Self.duration(control.maximum)
    }
  }

  /// The gains that the camera takes, in the driver's unit; nil where it takes none.
  public var gainRange: ClosedRange<Int64>? {
    get throws(MediaError) {
      guard let control = try gainControl, control.minimum <= control.maximum else { return nil }
      return control.minimum...control.maximum
    }
  }

  /// Sets duration and gain by hand.
  ///
  /// The automatics of exposure and gain are switched off first: `V4L2_CID_EXPOSURE_AUTO`,
  /// `V4L2_CID_AUTOGAIN`.
  ///
  /// - Parameters:
  ///   - duration: How long each frame is exposed; nil keeps what is in force.
  ///   - gain: The gain in the driver's unit; nil keeps what is in force.
  ///   - rounding: How a duration becomes a whole number of 100 µs, the unit of cameras.
  /// - Returns: What the driver then holds.
  /// - Throws: `MediaError` with `.controlOutOfRange`, and nothing was changed;
  ///   `.controlNotSupported`.
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
    try setByHand()
    if let units = units ?? chosen.duration?.value {
      try set(time, time.nearestValue(to: units))
    }
    if let gain = gain ?? chosen.gain, let control = try gainControl {
      try set(control, control.nearestValue(to: gain))
    }
    return try exposure
  }

  /// The ISO values that the camera takes, in the order of its menu; none where it has none.
  public var isoValues: [Double] {
    get throws(MediaError) {
      try find(.isoSensitivity)?.menu.compactMap(\.number).map { Double($0) / 1000 } ?? []
    }
  }

  /// The ISO value in force, or nil where the camera does not say.
  public var iso: Double? {
    get throws(MediaError) {
      guard let control = try find(.isoSensitivity) else { return nil }
      let index = try value(control).number
      return control.menu.first { $0.index == index }?.number.map { Double($0) / 1000 }
    }
  }

  /// Sets the ISO value by hand: `V4L2_CID_ISO_SENSITIVITY`.
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

  /// How much brighter than it would choose the camera exposes, in thousandths of an EV.
  ///
  /// Nil where the camera cannot be told; 1000 is twice the light.
  public var exposureTargetBias: Int64? {
    get throws(MediaError) {
      guard let control = try find(.exposureBias) else { return nil }
      let held = try value(control).number
      guard control.kind == .integerMenu else { return held }
      return control.menu.first { $0.index == held }?.number
    }
  }

  /// The biases that the camera takes, in thousandths of an EV, from the darkest.
  ///
  /// The first and the last where it takes all between them in steps; none where it takes none.
  public var exposureTargetBiases: [Int64] {
    get throws(MediaError) {
      guard let control = try find(.exposureBias) else { return [] }
      if control.kind == .integerMenu { return control.menu.compactMap(\.number).sorted() }
      return [control.minimum, control.maximum]
    }
  }

  /// Sets how much brighter than it would choose the camera exposes.
  ///
  /// - Parameter bias: In thousandths of an EV; the value nearest to it that the camera takes is
  ///   set.
  /// - Returns: The bias that is then in force.
  /// - Throws: `MediaError` with `.controlOutOfRange` beyond the darkest and the brightest,
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

  /// Whether the camera is still changing its exposure, or nil where nobody can tell.
  ///
  /// No V4L2 camera says so: the duration it has chosen is compared with that of the question
  /// before, so ask twice. Nil at the first question, and where the camera hides its choice.
  public var isAdjustingExposure: Bool? {
    get throws(MediaError) {
      guard let control = try find(.exposureTime), control.flags.contains(.volatile),
        let now = try value(control).number
      else { return nil }
      return state.withLock { state in
        defer { state.lastExposure = now }
        return state.lastExposure.map { $0 != now }
      }
    }
  }
}

extension CameraControls {
  /// The whole number of 100 µs that a duration becomes, if the camera takes it.
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

  /// A number of 100 µs as a time.
  static func duration(_ units: Int64) -> MediaTime {
    MediaTime(units, over: exposureTimescale)
  }

  /// Switches the automatics of exposure and gain off.
  private func setByHand() throws(MediaError) {
    try setLock(.exposure, false)
    if let item = manualExposureItem { try set(.automaticExposure, item) }
    try setIfPresent(.automaticGain, 0)
  }

  /// The gain that a camera has: of the picture, or of the sensor.
  private var gainControl: DeviceControl? {
    get throws(MediaError) {
      if let control = try find(.gain) { return control }
      return try find(.analogueGain)
    }
  }

  /// The item of the menu by which the camera chooses; webcams rarely have all four.
  private var automaticExposureItem: Int64? {
    item(ControlItem.exposureAutomatic, else: ControlItem.exposureAperturePriority)
  }

  /// The item of the menu by which the duration is set by hand.
  private var manualExposureItem: Int64? {
    item(ControlItem.exposureManual, else: ControlItem.exposureShutterPriority)
  }

  private func item(_ first: Int64, else second: Int64) -> Int64? {
    [first, second].first { has(.automaticExposure, item: $0) }
  }
}

extension Int64 {
  /// How far two numbers are apart, whatever they are.
  fileprivate func distance(from other: Int64) -> UInt128 {
    (Int128(self) - Int128(other)).magnitude
  }
}
