// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

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
}

extension CameraControls {
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
