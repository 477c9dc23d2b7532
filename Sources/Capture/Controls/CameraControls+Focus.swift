// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// Who decides where the lens is focused.
public enum FocusMode: String, Hashable, Sendable, CaseIterable {
  /// The lens stays where it is.
  case locked
  /// The camera focuses once, and the lens then stays.
  case autoFocus
  /// The camera focuses whenever it needs to.
  case continuousAutoFocus
}

extension CameraControls {
  /// Whether the camera has a mode of focus.
  public func isFocusModeSupported(_ mode: FocusMode) -> Bool {
    switch mode {
    case .locked: has(.automaticFocus) || has(.focus) || canLock(.focus)
    case .autoFocus: has(.automaticFocusStart)
    case .continuousAutoFocus: has(.automaticFocus)
    }
  }

  /// The mode of focus, or nil of a camera whose focus is fixed.
  public var focusMode: FocusMode? {
    get throws(MediaError) {
      let isContinuous = try number(.automaticFocus)
      if isContinuous == 1 { return try isLocked(.focus) ? .locked : .continuousAutoFocus }
      if try isAdjustingFocus == true { return .autoFocus }
      return isFocusModeSupported(.locked) ? .locked : nil
    }
  }

  /// Sets the mode of focus: `V4L2_CID_FOCUS_AUTO`, `V4L2_CID_AUTO_FOCUS_START`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` for a mode that the camera has not.
  public func setFocusMode(_ mode: FocusMode) throws(MediaError) {
    guard isFocusModeSupported(mode) else { throw missing("focus mode \(mode.rawValue)") }
    switch mode {
    case .locked:
      if has(.automaticFocus) {
        try set(.automaticFocus, 0)
      } else if canLock(.focus) {
        try setLock(.focus, true)
      }
    case .autoFocus:
      // A lens that focuses all the time cannot be told to focus once.
      try setIfPresent(.automaticFocus, 0)
      try setLock(.focus, false)
      try set(.automaticFocusStart, 1)
    case .continuousAutoFocus:
      try setLock(.focus, false)
      try set(.automaticFocus, 1)
    }
  }

  /// Whether the lens can be moved by hand.
  public var isLockingFocusWithLensPositionSupported: Bool {
    (try? find(.focus)).map { $0.minimum < $0.maximum } ?? false
  }

  /// Where the lens is: 0 focuses as close as it can, 1 as far as it can; nil where it does not say.
  ///
  /// The unit of `V4L2_CID_FOCUS_ABSOLUTE` is the driver's, and greater is closer.
  public var lensPosition: Double? {
    get throws(MediaError) {
      guard let control = try find(.focus), let number = try value(control).number else {
        return nil
      }
      return control.fraction(of: number).map { 1 - $0 }
    }
  }

  /// Stops the camera from focusing, and moves the lens.
  ///
  /// - Parameter lensPosition: From 0, as close as it can, to 1; the driver's unit nearest to it
  ///   is set.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setFocusModeLocked(lensPosition: Double) throws(MediaError) {
    guard (0...1).contains(lensPosition) else {
      throw outOfRange("the lens position", "\(lensPosition)", takes: "0 to 1")
    }
    let control = try require(.focus)
    try setIfPresent(.automaticFocus, 0)
    try setLock(.focus, false)
    try set(control, control.value(at: 1 - lensPosition))
  }

  /// Whether the lens is moving to focus, or nil where the camera does not tell.
  ///
  /// The source is `V4L2_CID_AUTO_FOCUS_STATUS`, which few cameras have.
  public var isAdjustingFocus: Bool? {
    get throws(MediaError) {
      try number(.automaticFocusStatus).map { $0 & ControlBit.focusIsBusy != 0 }
    }
  }
}

extension CameraControls {
  /// A bit of `V4L2_CID_3A_LOCK`.
  struct Lock: Sendable {
    let bit: Int64
    static let exposure = Lock(bit: ControlBit.lockExposure)
    static let whiteBalance = Lock(bit: ControlBit.lockWhiteBalance)
    static let focus = Lock(bit: ControlBit.lockFocus)
  }

  /// Whether the camera has the lock; of a device that is gone, false.
  func canLock(_ lock: Lock) -> Bool { (try? isLockPresent(lock)) ?? false }

  func isLockPresent(_ lock: Lock) throws(MediaError) -> Bool {
    guard let control = try find(.lock3A) else { return false }
    return control.maximum & lock.bit != 0
  }

  func isLocked(_ lock: Lock) throws(MediaError) -> Bool {
    (try number(.lock3A) ?? 0) & lock.bit != 0
  }

  /// Sets or clears a lock, and leaves the others; nothing happens where the camera has none.
  func setLock(_ lock: Lock, _ isOn: Bool) throws(MediaError) {
    guard let control = try find(.lock3A), control.maximum & lock.bit != 0 else { return }
    let bits = try value(control).number ?? 0
    let wanted = isOn ? bits | lock.bit : bits & ~lock.bit
    if wanted != bits { try set(control, wanted) }
  }
}
