// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// The mains frequency whose flicker the camera suppresses.
public enum PowerLineFrequency: Int, Hashable, Sendable, CaseIterable {
  /// The camera does not suppress flicker.
  case off = 0
  case hertz50 = 1
  case hertz60 = 2
  /// The camera detects the mains frequency.
  case automatic = 3
}

extension CameraControls {
  /// Whether automatic exposure may lower the frame rate in low light.
  ///
  /// Set this to false for a steady frame rate; many webcams start with true. Nil where the camera
  /// lacks the control. ``isLowLightBoostEnabled`` is a different control, which does not change
  /// the frame rate.
  public var isAutoVideoFrameRateEnabled: Bool? {
    get throws(MediaError) { try flag(.exposureMayLowerRate) }
  }

  /// Allows automatic exposure to lower the frame rate: `V4L2_CID_EXPOSURE_AUTO_PRIORITY`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`. Some cameras accept the change only while
  ///   exposure is automatic; others throw `.controlOutOfRange` or `.deviceFailed`.
  public func setAutoVideoFrameRateEnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.set(.exposureMayLowerRate, isEnabled ? 1 : 0)
  }

  /// Whether the camera has a scene mode for low light.
  public var isLowLightBoostSupported: Bool { camera.has(.sceneMode, item: ControlItem.sceneNight) }

  /// Whether the scene mode for low light is on, or nil where the camera lacks it.
  ///
  /// Corresponds to `automaticallyEnablesLowLightBoostWhenAvailable`.
  public var isLowLightBoostEnabled: Bool? {
    get throws(MediaError) {
      guard isLowLightBoostSupported else { return nil }
      return try camera.number(.sceneMode) == ControlItem.sceneNight
    }
  }

  /// Switches the scene mode for low light on or off: `V4L2_CID_SCENE_MODE`.
  ///
  /// Low-light boost does not decide whether the camera may lower its frame rate.
  /// ``setAutoVideoFrameRateEnabled(_:)`` does.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setLowLightBoostEnabled(_ isEnabled: Bool) throws(MediaError) {
    guard isLowLightBoostSupported else { throw camera.missing("low-light boost") }
    try camera.set(.sceneMode, isEnabled ? ControlItem.sceneNight : ControlItem.sceneNone)
  }

  /// Whether the camera extends its dynamic range (HDR), or nil where it cannot.
  ///
  /// Many cameras combine two exposures for this, which lowers the frame rate. Use false for high
  /// frame rates.
  public var isVideoHDREnabled: Bool? {
    get throws(MediaError) { try flag(.wideDynamicRange) }
  }

  /// Switches the extended dynamic range (HDR) on or off: `V4L2_CID_WIDE_DYNAMIC_RANGE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setVideoHDREnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.set(.wideDynamicRange, isEnabled ? 1 : 0)
  }

  /// Whether the camera stabilizes the image, or nil where it cannot.
  public var isVideoStabilizationEnabled: Bool? {
    get throws(MediaError) { try flag(.imageStabilization) }
  }

  /// Switches image stabilization on or off: `V4L2_CID_IMAGE_STABILIZATION`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setVideoStabilizationEnabled(_ isEnabled: Bool) throws(MediaError) {
    try camera.set(.imageStabilization, isEnabled ? 1 : 0)
  }

  /// The flicker suppression for mains light, or nil where the camera does not report it.
  ///
  /// Flicker suppression restricts the exposure durations that automatic exposure may choose.
  public var powerLineFrequency: PowerLineFrequency? {
    get throws(MediaError) {
      try camera.number(.powerLineFrequency).flatMap { PowerLineFrequency(rawValue: Int($0)) }
    }
  }

  /// Whether the camera can suppress flicker at a mains frequency.
  public func isPowerLineFrequencySupported(_ frequency: PowerLineFrequency) -> Bool {
    camera.has(.powerLineFrequency, item: Int64(frequency.rawValue))
  }

  /// Sets the mains frequency for flicker suppression: `V4L2_CID_POWER_LINE_FREQUENCY`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks the control or the
  ///   frequency.
  public func setPowerLineFrequency(_ frequency: PowerLineFrequency) throws(MediaError) {
    guard isPowerLineFrequencySupported(frequency) else {
      throw camera.missing("power line frequency \(frequency)")
    }
    try camera.set(.powerLineFrequency, Int64(frequency.rawValue))
  }

  /// Whether the privacy shutter is closed, which makes all frames black.
  ///
  /// Nil where the camera does not report it. The source is `V4L2_CID_PRIVACY`.
  public var isPrivacyShutterClosed: Bool? {
    get throws(MediaError) { try flag(.privacy) }
  }

  /// Whether the image is mirrored left to right, or nil where the camera cannot mirror.
  public var isVideoMirrored: Bool? {
    get throws(MediaError) {
      guard let isMirrored = try flag(.isMirrored) else { return nil }
      // A camera that flips in both directions rotates the image by 180 degrees. That is not a
      // mirroring.
      return try isMirrored != (flag(.isFlipped) ?? false)
    }
  }

  /// Switches left-to-right mirroring on or off and keeps the rotation: `V4L2_CID_HFLIP`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`, or `.deviceBusy` from cameras that cannot
  ///   change mirroring while they stream.
  public func setVideoMirrored(_ isMirrored: Bool) throws(MediaError) {
    try camera.set(.isMirrored, isMirrored != (flag(.isFlipped) ?? false) ? 1 : 0)
  }

  /// The clockwise rotation of the image, from 0 to 359 degrees.
  ///
  /// Nil where the camera cannot rotate the image.
  public var videoRotationAngle: Int64? {
    get throws(MediaError) {
      let rotated = try camera.number(.rotation)
      let isFlipped = try flag(.isFlipped)
      guard rotated != nil || (isFlipped != nil && camera.has(.isMirrored)) else { return nil }
      return (((rotated ?? 0) % 360) + (isFlipped == true ? 540 : 360)) % 360
    }
  }

  /// Whether the camera can rotate the image clockwise by an angle in degrees.
  public func isVideoRotationAngleSupported(_ angle: Int64) -> Bool {
    if let control = try? camera.find(.rotation) {
      return control.minimum <= angle && angle <= control.maximum
        && control.nearestValue(to: angle) == angle
    }
    return (angle == 0 || angle == 180) && camera.has(.isMirrored) && camera.has(.isFlipped)
  }

  /// Rotates the image and keeps its mirroring.
  ///
  /// Uses `V4L2_CID_ROTATE`, or `V4L2_CID_HFLIP` and `V4L2_CID_VFLIP` together. A rotation by 90 or
  /// 270 degrees may change the frame size.
  ///
  /// - Parameter angle: The clockwise rotation, in degrees.
  /// - Throws: `MediaError` with `.controlNotSupported` if the camera lacks the angle, or
  ///   `.deviceBusy` from cameras that cannot rotate while they stream.
  public func setVideoRotationAngle(_ angle: Int64) throws(MediaError) {
    guard isVideoRotationAngleSupported(angle) else {
      throw camera.missing("rotation by \(angle) degrees")
    }
    let isMirrored = try isVideoMirrored ?? false
    let canRotate = camera.has(.rotation)
    let isFlipped = !canRotate && angle == 180
    if canRotate { try camera.set(.rotation, angle) }
    try camera.setIfPresent(.isFlipped, isFlipped ? 1 : 0)
    try camera.setIfPresent(.isMirrored, isMirrored != isFlipped ? 1 : 0)
  }

  /// Whether an on/off control is on, or nil if the device lacks the control.
  private func flag(_ id: ControlID) throws(MediaError) -> Bool? {
    try camera.number(id).map { $0 != 0 }
  }
}
