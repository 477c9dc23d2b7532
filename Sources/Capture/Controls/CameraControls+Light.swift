// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// The mode of the torch, the camera's continuous light, while a session captures.
public enum TorchMode: String, Hashable, Sendable, CaseIterable {
  case off
  case on
  /// The torch is lit while frames are dark.
  case auto
}

/// Whether the flash fires for a photo.
public enum FlashMode: String, Hashable, Sendable, CaseIterable {
  case off
  case on
  /// The flash fires if frames are dark.
  case auto
}

// A camera's LED usually has a separate device node, `/dev/v4l-subdev…`, in the same media device.
// The camera's own node then has no LED controls. The LED's node is opened when a light is first
// used, or when all controls are listed. It stays open, because some drivers switch the LED off
// when its last handle is closed.
extension CameraControls {
  /// Whether the camera has a torch whose device node this user may open.
  public var hasTorch: Bool { has(.flashMode, item: ControlItem.ledLights) }

  /// Whether the camera has a flash whose device node this user may open.
  public var hasFlash: Bool { has(.flashMode, item: ControlItem.ledFlashes) }

  /// Whether the torch is lit now, or nil if the camera has none.
  public var isTorchActive: Bool? {
    get throws(MediaError) {
      guard hasTorch, let mode = try number(.flashMode) else { return nil }
      return mode == ControlItem.ledLights
    }
  }

  /// The torch brightness from 0 to 1, or nil if the camera has no torch.
  ///
  /// The value is 0 while the torch is off. It is 1 for a lit torch without adjustable brightness.
  public var torchLevel: Double? {
    get throws(MediaError) {
      guard let isActive = try isTorchActive else { return nil }
      guard isActive else { return 0 }
      guard let control = try find(.torchIntensity), control.maximum > 0,
        let current = try value(control).number
      else { return 1 }
      return min(max(Double(current) / Double(control.maximum), 0), 1)
    }
  }

  /// The values of the LED's mode and of its torch brightness, saved by ``lightState``.
  package struct LightState: Sendable {
    fileprivate let values: [(id: ControlID, value: Int64)]
  }

  /// The current state of the LED, to be restored later by ``restoreLight(_:)``.
  package var lightState: LightState {
    get throws(MediaError) {
      var values: [(id: ControlID, value: Int64)] = []
      for id in [ControlID.torchIntensity, .flashMode] {
        if let value = try number(id) { values.append((id, value)) }
      }
      return LightState(values: values)
    }
  }

  /// Restores an earlier state of the LED, even if another object or program had set that state.
  ///
  /// The torch mode of this object is then off.
  package func restoreLight(_ light: LightState) throws(MediaError) {
    if hasTorch { try setTorchMode(.off) }
    for (id, value) in light.values { try set(id, value) }
  }

  // MARK: - The flash

  /// The flash mode, or nil if the camera has no flash.
  ///
  /// The mode is off until ``setFlashMode(_:)`` is called.
  public var flashMode: FlashMode? { hasFlash ? state.withLock { $0.flashMode } : nil }

  /// Sets the flash mode for the next photos.
  ///
  /// This object stores the mode. The flash fires only when a photo is taken or ``fireFlash()`` is
  /// called.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera has no flash.
  public func setFlashMode(_ mode: FlashMode) throws(MediaError) {
    guard hasFlash else { throw missing("flash") }
    state.withLock { $0.flashMode = mode }
  }

  /// Fires the flash once, whatever the current ``flashMode``: `V4L2_CID_FLASH_LED_MODE`,
  /// `V4L2_CID_FLASH_STROBE`.
  ///
  /// If the torch is lit, it goes out and stays off until it is set again.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if software cannot fire the flash, or
  ///   `.deviceFailed` if the LED is too hot or not ready.
  public func fireFlash() throws(MediaError) {
    let strobe = try require(.flashStrobe)
    if hasFlash { try set(.flashMode, ControlItem.ledFlashes) }
    try set(strobe, 1)
  }
}
