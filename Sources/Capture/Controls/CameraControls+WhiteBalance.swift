// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

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
