// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// The state of the torch, the camera's continuous light.
public enum TorchMode: String, Hashable, Sendable, CaseIterable {
  case off
  case on
}

/// Whether the flash fires when it is triggered.
public enum FlashMode: String, Hashable, Sendable, CaseIterable {
  case off
  case on
}

// A camera's LED is usually a device of its own, `/dev/v4l-subdev…`, in the same media device. The
// camera's node then has no LED controls. The LED's node is opened at the first use of a light, or
// when all controls are listed. Some drivers switch the LED off when its last handle is closed.
extension CameraControls {
  /// Whether the camera has a torch that this user has permission to open.
  public var hasTorch: Bool { has(.flashMode, item: ControlItem.ledLights) }

  /// Whether the camera has a flash that this user has permission to open.
  public var hasFlash: Bool { has(.flashMode, item: ControlItem.ledFlashes) }

  /// The state of the torch, or nil if the camera has none.
  public var torchMode: TorchMode? {
    get throws(MediaError) {
      guard hasTorch, let mode = try number(.flashMode) else { return nil }
      return mode == ControlItem.ledLights ? .on : .off
    }
  }

  /// The torch brightness from 0 to 1, or nil if the camera has no torch.
  ///
  /// The value is 0 while the torch is off. It is 1 for a lit torch without adjustable brightness.
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

  /// Switches the torch on at a brightness: `V4L2_CID_FLASH_TORCH_INTENSITY`.
  ///
  /// - Parameter level: The fraction of the torch's greatest current, above 0 and at most 1. The
  ///   nearest supported current is set.
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

  /// The flash mode, or nil if the camera has no flash.
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

  /// Fires the flash once: `V4L2_CID_FLASH_STROBE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if software cannot fire the flash, or
  ///   `.deviceFailed` if the LED is too hot or not ready.
  public func fireFlash() throws(MediaError) { try set(.flashStrobe, 1) }

  private func setLED(_ mode: Int64) throws(MediaError) {
    try set(.flashMode, mode)
  }
}
