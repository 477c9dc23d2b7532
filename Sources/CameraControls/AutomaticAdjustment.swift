// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankV4L2

/// A row of the table of adjustments that cameras make automatically.
struct AutomaticAdjustment: Sendable {
  /// The modes of an adjustment.
  enum Mode: Sendable {
    case locked
    case once
    case continuous
  }

  /// Whether the camera adjusts continuously.
  let isOn: CameraProperty<Bool>
  /// The control that is switched on and off with the adjustment.
  var companion: ControlID?
  /// The bit of `V4L2_CID_3A_LOCK` that pauses the adjustment, or 0.
  var lock: Int64 = 0
  /// The button that runs the adjustment once.
  var start: ControlID?

  static let exposure = AutomaticAdjustment(
    isOn: CameraProperty(
      [.automaticExposure],
      .flag(
        on: [ControlItem.exposureAutomatic, ControlItem.exposureAperturePriority],
        off: [ControlItem.exposureManual, ControlItem.exposureShutterPriority])),
    companion: .automaticGain, lock: ControlBit.lockExposure)
  static let whiteBalance = AutomaticAdjustment(
    isOn: CameraProperty(
      [.automaticWhiteBalance, .whiteBalancePreset],
      .flag(on: [ControlItem.whiteBalanceAutomatic], off: [ControlItem.whiteBalanceManual])),
    lock: ControlBit.lockWhiteBalance, start: .whiteBalanceOnce)
  static let focus = AutomaticAdjustment(
    isOn: CameraProperty([.automaticFocus], .flag()), lock: ControlBit.lockFocus,
    start: .automaticFocusStart)
  static let iso = AutomaticAdjustment(isOn: CameraProperty([.automaticISO], .flag()))
}

extension ControlledCamera {
  /// Whether the camera supports a mode of an adjustment.
  func supports(_ mode: AutomaticAdjustment.Mode, of adjustment: AutomaticAdjustment) -> Bool {
    switch mode {
    case .locked: supports(adjustment.isOn, false) || canLock(adjustment)
    case .once: adjustment.start.map(has) ?? false
    case .continuous: supports(adjustment.isOn, true)
    }
  }

  /// Sets the mode of an adjustment.
  ///
  /// `V4L2_CID_3A_LOCK` is preferred for `locked`, because the adjustment then continues where it was.
  func set(
    _ mode: AutomaticAdjustment.Mode, of adjustment: AutomaticAdjustment
  ) throws(MediaError) {
    switch mode {
    case .locked where canLock(adjustment): try setLock(adjustment, true)
    case .locked: try switchOff(adjustment)
    case .once:
      // The continuous adjustment is switched off first. White balance ignores the button otherwise,
      // and V4L2 does not define what focus does.
      try switchOff(adjustment)
      if let start = adjustment.start { try set(start, 1) }
    case .continuous:
      try setLock(adjustment, false)
      try write(adjustment.isOn, true)
      if let companion = adjustment.companion { try setIfPresent(companion, 1) }
    }
  }

  /// Switches an adjustment off, so that the values that it chose can be set.
  func switchOff(_ adjustment: AutomaticAdjustment) throws(MediaError) {
    try setLock(adjustment, false)
    if supports(adjustment.isOn, false) { try write(adjustment.isOn, false) }
    if let companion = adjustment.companion { try setIfPresent(companion, 0) }
  }

  /// Whether the camera can pause an adjustment by `V4L2_CID_3A_LOCK`.
  ///
  /// False if the device is lost.
  func canLock(_ adjustment: AutomaticAdjustment) -> Bool {
    ((try? find(.lock3A))?.maximum ?? 0) & adjustment.lock != 0
  }

  /// Whether an adjustment is paused by `V4L2_CID_3A_LOCK`.
  func isLocked(_ adjustment: AutomaticAdjustment) throws(MediaError) -> Bool {
    (try number(.lock3A) ?? 0) & adjustment.lock != 0
  }

  /// Sets or clears one bit of `V4L2_CID_3A_LOCK` and keeps the other bits.
  ///
  /// Does nothing if the camera does not support the bit.
  private func setLock(_ adjustment: AutomaticAdjustment, _ isOn: Bool) throws(MediaError) {
    guard let control = try find(.lock3A), control.maximum & adjustment.lock != 0 else { return }
    let bits = try value(control).number ?? 0
    let wanted = isOn ? bits | adjustment.lock : bits & ~adjustment.lock
    if wanted != bits { try set(control, wanted) }
  }
}
