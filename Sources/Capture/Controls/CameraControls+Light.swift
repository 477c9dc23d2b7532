// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// Whether the torch is on.
public enum TorchMode: String, Hashable, Sendable, CaseIterable {
  case off
  case on
}

/// Whether the flash fires when it is triggered.
public enum FlashMode: String, Hashable, Sendable, CaseIterable {
  case off
  case on
}

// An LED is most often a device of its own, `/dev/v4l-subdev…`, of the same media device as the
// camera's node, which then has none of its controls. It is opened when light is first asked for, or
// all controls are listed; some drivers switch their LED off when nobody has it open any more.
extension CameraControls {
  /// Whether the camera has a torch that this user may open.
  public var hasTorch: Bool { has(.flashMode, item: ControlItem.ledLights) }

  /// Whether the camera has a flash that this user may open.
  public var hasFlash: Bool { has(.flashMode, item: ControlItem.ledFlashes) }

  /// Whether the torch is on, or nil where there is none.
  public var torchMode: TorchMode? {
    get throws(MediaError) {
      guard hasTorch, let mode = try number(.flashMode) else { return nil }
      return mode == ControlItem.ledLights ? .on : .off
    }
  }

  /// How bright the torch is, from 0 to 1; 0 while it is off, nil where there is none.
  ///
  /// An LED of one brightness is at 1 while it lights.
  public var torchLevel: Double? {
    get throws(MediaError) {
      guard let mode = try torchMode else { return nil }
      guard mode == .on else { return 0 }
      guard let control = try find(.torchIntensity), control.maximum > 0,
        let current = try value(control).number
      else { return 1 }
      return min(max(Double(current) / Double(control.maximum), 0), 1)
    }
  }

  /// Switches the torch on or off: `V4L2_CID_FLASH_LED_MODE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` where there is no torch.
  public func setTorchMode(_ mode: TorchMode) throws(MediaError) {
    guard hasTorch else { throw missing("torch") }
    try setLED(mode == .on ? ControlItem.ledLights : ControlItem.ledOff)
  }

  /// Switches the torch on with a brightness: `V4L2_CID_FLASH_TORCH_INTENSITY`.
  ///
  /// - Parameter level: Above 0, to 1, as a share of the torch's greatest current; the nearest
  ///   current that it takes is set.
  /// - Throws: `MediaError` with `.controlOutOfRange`, `.controlNotSupported`.
  public func setTorchModeOn(level: Double) throws(MediaError) {
    guard hasTorch else { throw missing("torch") }
    guard level > 0, level <= 1 else {
      throw outOfRange("the torch level", "\(level)", takes: "numbers above 0, to 1")
    }
    if let control = try find(.torchIntensity) {
      let current = (Double(control.maximum) * level).rounded()
      try set(control, control.nearestValue(to: Int64(saturating: current)))
    }
    try setLED(ControlItem.ledLights)
  }

  /// Whether the flash is on, or nil where it cannot.
  public var flashMode: FlashMode? {
    get throws(MediaError) {
      guard hasFlash, let mode = try number(.flashMode) else { return nil }
      return mode == ControlItem.ledFlashes ? .on : .off
    }
  }

  /// Switches the flash on or off: `V4L2_CID_FLASH_LED_MODE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` where there is no flash.
  public func setFlashMode(_ mode: FlashMode) throws(MediaError) {
    guard hasFlash else { throw missing("flash") }
    try setLED(mode == .on ? ControlItem.ledFlashes : ControlItem.ledOff)
  }

  /// Flashes now: `V4L2_CID_FLASH_STROBE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` where software cannot; `.deviceFailed`
  ///   where the LED is too hot or not ready.
  public func fireFlash() throws(MediaError) { try set(.flashStrobe, 1) }

  private func setLED(_ mode: Int64) throws(MediaError) {
    try set(.flashMode, mode)
  }
}
