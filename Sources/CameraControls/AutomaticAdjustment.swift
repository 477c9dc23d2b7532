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

  /// The adjustment's name in errors.
  let name: String
  /// The controls that may switch the adjustment, the preferred one first.
  private var switches: [ControlID] = []
  /// The items of a menu that switch the adjustment on or off, in order of preference.
  private var items: (on: [Int64], off: [Int64]) = ([1], [0])
  /// The control that is switched on and off with the adjustment.
  private(set) var companion: ControlID?
  /// The bit of `V4L2_CID_3A_LOCK` that pauses the adjustment, or 0.
  private(set) var lock: Int64 = 0
  /// The button that runs the adjustment once.
  private(set) var start: ControlID?

  /// Whether the camera adjusts continuously.
  var isOn: CameraProperty<Bool> {
    CameraProperty(controls: switches, unit: .flag(on: items.on, off: items.off))
  }

  static let exposure = AutomaticAdjustment(
    name: "exposure", switches: [.automaticExposure],
    items: (
      on: [ControlItem.exposureAutomatic, ControlItem.exposureAperturePriority],
      off: [ControlItem.exposureManual, ControlItem.exposureShutterPriority]
    ), companion: .automaticGain, lock: ControlBit.lockExposure)
  static let whiteBalance = AutomaticAdjustment(
    name: "white balance", switches: [.automaticWhiteBalance, .whiteBalancePreset],
    items: (on: [ControlItem.whiteBalanceAutomatic], off: [ControlItem.whiteBalanceManual]),
    lock: ControlBit.lockWhiteBalance, start: .whiteBalanceOnce)
  static let focus = AutomaticAdjustment(
    name: "focus", switches: [.automaticFocus], lock: ControlBit.lockFocus,
    start: .automaticFocusStart)
  static let iso = AutomaticAdjustment(name: "ISO", switches: [.automaticISO])
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
