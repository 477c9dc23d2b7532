// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// Who decides which light is white.
public enum WhiteBalanceMode: String, Hashable, Sendable, CaseIterable {
  /// The balance stays as it is.
  case locked
  /// The camera measures once, and the balance then stays.
  case autoWhiteBalance
  /// The camera measures whenever the light changes.
  case continuousAutoWhiteBalance
}

extension CameraControls {
  /// Whether the camera has a mode of white balance.
  public func isWhiteBalanceModeSupported(_ mode: WhiteBalanceMode) -> Bool {
    switch mode {
    case .locked:
      has(.automaticWhiteBalance) || canLock(.whiteBalance)
        || has(.whiteBalancePreset, item: ControlItem.whiteBalanceManual)
    case .autoWhiteBalance: has(.whiteBalanceOnce)
    case .continuousAutoWhiteBalance:
      has(.automaticWhiteBalance)
        || has(.whiteBalancePreset, item: ControlItem.whiteBalanceAutomatic)
    }
  }

  /// The mode of white balance, or nil where the camera does not say.
  public var whiteBalanceMode: WhiteBalanceMode? {
    get throws(MediaError) {
      if try isLocked(.whiteBalance) { return .locked }
      if let isAutomatic = try number(.automaticWhiteBalance) {
        return isAutomatic == 0 ? .locked : .continuousAutoWhiteBalance
      }
      return try number(.whiteBalancePreset).map {
        $0 == ControlItem.whiteBalanceAutomatic ? .continuousAutoWhiteBalance : .locked
      }
    }
  }

  /// Sets the mode of white balance: `V4L2_CID_AUTO_WHITE_BALANCE`, `V4L2_CID_DO_WHITE_BALANCE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` for a mode that the camera has not.
  public func setWhiteBalanceMode(_ mode: WhiteBalanceMode) throws(MediaError) {
    guard isWhiteBalanceModeSupported(mode) else {
      throw missing("white balance mode \(mode.rawValue)")
    }
    switch mode {
    case .locked where canLock(.whiteBalance): try setLock(.whiteBalance, true)
    case .locked: try setAutomaticWhiteBalance(false)
    case .autoWhiteBalance:
      try setLock(.whiteBalance, false)
      // While the camera measures all the time, the button does nothing.
      try setIfPresent(.automaticWhiteBalance, 0)
      try set(.whiteBalanceOnce, 1)
    case .continuousAutoWhiteBalance:
      try setLock(.whiteBalance, false)
      try setAutomaticWhiteBalance(true)
    }
  }

  /// The colour of the light that is shown as white, in kelvin, or nil where the camera does not say.
  public var whiteBalanceTemperature: Int64? {
    get throws(MediaError) { try number(.whiteBalanceTemperature) }
  }

  /// The temperatures that the camera takes, in kelvin; nil where it takes none.
  public var whiteBalanceTemperatureRange: ClosedRange<Int64>? {
    get throws(MediaError) {
      guard let control = try find(.whiteBalanceTemperature), control.minimum <= control.maximum
      else { return nil }
      return control.minimum...control.maximum
    }
  }

  /// Sets the colour of the light by hand: `V4L2_CID_WHITE_BALANCE_TEMPERATURE`.
  ///
  /// - Parameter temperature: In kelvin; the value nearest to it that the camera takes is set.
  /// - Returns: The temperature that is then in force.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  @discardableResult
  public func setWhiteBalanceModeLocked(temperature: Int64) throws(MediaError) -> Int64 {
    let control = try require(.whiteBalanceTemperature)
    guard control.minimum <= temperature, temperature <= control.maximum else {
      throw outOfRange(
        "the white balance", "\(temperature) K",
        takes: "\(control.minimum) K to \(control.maximum) K")
    }
    try setLock(.whiteBalance, false)
    if isWhiteBalanceModeSupported(.continuousAutoWhiteBalance) {
      try setAutomaticWhiteBalance(false)
    }
    return try set(control, control.nearestValue(to: temperature))
  }

  /// Whether the camera is still changing its white balance, or nil where nobody can tell.
  ///
  /// The temperature it has chosen is compared with that of the question before, as
  /// ``isAdjustingExposure`` does.
  public var isAdjustingWhiteBalance: Bool? {
    get throws(MediaError) {
      guard let control = try find(.whiteBalanceTemperature), control.flags.contains(.volatile),
        let now = try value(control).number
      else { return nil }
      return state.withLock { state in
        defer { state.lastTemperature = now }
        return state.lastTemperature.map { $0 != now }
      }
    }
  }

  private func setAutomaticWhiteBalance(_ isOn: Bool) throws(MediaError) {
    if let control = try find(.automaticWhiteBalance) {
      try set(control, isOn ? 1 : 0)
    } else {
      let item = isOn ? ControlItem.whiteBalanceAutomatic : ControlItem.whiteBalanceManual
      try set(.whiteBalancePreset, item)
    }
  }
}
