// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore

/// The exposure mode of a camera: fixed, automatic or manual.
public enum ExposureMode: String, Hashable, Sendable, CaseIterable {
  /// The exposure stays at the last automatic values.
  case locked
  /// The camera adjusts the exposure once, then keeps it. V4L2 has no such mode.
  case autoExpose
  /// The camera adjusts the exposure whenever the light changes.
  case continuousAutoExposure
  /// Exposure duration and gain are set manually.
  case custom
}

/// The exposure duration and gain of a camera.
public struct ExposureSetting: Hashable, Sendable {
  /// The exposure time of each frame, or nil where the camera does not report it.
  public let duration: MediaTime?
  /// The gain in the driver's unit, or nil where the camera does not report it.
  public let gain: Int64?
}

/// The white balance mode of a camera: fixed, once or continuous.
public enum WhiteBalanceMode: String, Hashable, Sendable, CaseIterable {
  /// The white balance stays fixed.
  case locked
  /// The camera measures once, then the white balance stays fixed.
  case autoWhiteBalance
  /// The camera adjusts the white balance whenever the light changes.
  case continuousAutoWhiteBalance

  var adjustment: AutomaticAdjustment.Mode {
    switch self {
    case .locked: .locked
    case .autoWhiteBalance: .once
    case .continuousAutoWhiteBalance: .continuous
    }
  }
}

/// The focus mode of a camera: fixed, once or continuous.
public enum FocusMode: String, Hashable, Sendable, CaseIterable {
  /// The lens stays at its position.
  case locked
  /// The camera focuses once, then the lens stays at its position.
  case autoFocus
  /// The camera refocuses whenever it needs to.
  case continuousAutoFocus

  var adjustment: AutomaticAdjustment.Mode {
    switch self {
    case .locked: .locked
    case .autoFocus: .once
    case .continuousAutoFocus: .continuous
    }
  }
}

/// The distances that autofocus searches.
public enum AutoFocusRangeRestriction: String, Hashable, Sendable, CaseIterable {
  /// No restriction: autofocus searches all distances.
  case none
  /// Distances near the camera.
  case near
  /// Distances far from the camera.
  case far
}

/// The mains frequency whose flicker the camera suppresses.
public enum PowerLineFrequency: Int, Hashable, Sendable, CaseIterable {
  /// The camera does not suppress flicker.
  case off = 0
  case hertz50 = 1
  case hertz60 = 2
  /// The camera detects the mains frequency.
  case automatic = 3
}

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
