// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2

/// The mains whose light would flicker in the picture.
public enum PowerLineFrequency: Int, Hashable, Sendable, CaseIterable {
  /// Nothing is done against flicker.
  case off = 0
  case hertz50 = 1
  case hertz60 = 2
  /// The camera finds out.
  case automatic = 3
}

extension CameraControls {
  /// Whether automatic exposure may lower the frame rate in poor light; nil where it cannot be told.
  ///
  /// What Apple calls low-light boost, and automatic frame rate. It must be off for a steady rate,
  /// but many webcams come with it on.
  public var isAutoVideoFrameRateEnabled: Bool? {
    get throws(MediaError) { try flag(.exposureMayLowerRate) }
  }

  /// Allows automatic exposure to lower the frame rate: `V4L2_CID_EXPOSURE_AUTO_PRIORITY`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`; `.controlOutOfRange` or `.deviceFailed`
  ///   from cameras that take it only while exposure is automatic.
  public func setAutoVideoFrameRateEnabled(_ isEnabled: Bool) throws(MediaError) {
    try set(.exposureMayLowerRate, isEnabled ? 1 : 0)
  }

  /// Whether the camera widens its dynamic range; nil where it cannot.
  ///
  /// Often by combining two exposures, which costs frame rate: off for high rates.
  public var isVideoHDREnabled: Bool? {
    get throws(MediaError) { try flag(.wideDynamicRange) }
  }

  /// Widens the dynamic range, or not: `V4L2_CID_WIDE_DYNAMIC_RANGE`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setVideoHDREnabled(_ isEnabled: Bool) throws(MediaError) {
    try set(.wideDynamicRange, isEnabled ? 1 : 0)
  }

  /// Whether the camera steadies the picture; nil where it cannot.
  public var isVideoStabilizationEnabled: Bool? {
    get throws(MediaError) { try flag(.imageStabilization) }
  }

  /// Steadies the picture, or not: `V4L2_CID_IMAGE_STABILIZATION`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`.
  public func setVideoStabilizationEnabled(_ isEnabled: Bool) throws(MediaError) {
    try set(.imageStabilization, isEnabled ? 1 : 0)
  }

  /// What the camera does against the flicker of mains light; nil where it does not say.
  ///
  /// It limits how the camera chooses its exposure.
  public var powerLineFrequency: PowerLineFrequency? {
    get throws(MediaError) {
      try number(.powerLineFrequency).flatMap { PowerLineFrequency(rawValue: Int($0)) }
    }
  }

  /// Whether the camera can be set to these mains.
  public func isPowerLineFrequencySupported(_ frequency: PowerLineFrequency) -> Bool {
    has(.powerLineFrequency, item: Int64(frequency.rawValue))
  }

  /// Sets the mains whose flicker is fought: `V4L2_CID_POWER_LINE_FREQUENCY`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`, also for mains that its menu lacks.
  public func setPowerLineFrequency(_ frequency: PowerLineFrequency) throws(MediaError) {
    guard isPowerLineFrequencySupported(frequency) else {
      throw missing("power line frequency \(frequency)")
    }
    try set(.powerLineFrequency, Int64(frequency.rawValue))
  }

  /// Whether the shutter before the lens is closed, so that frames are black; nil where the camera
  /// does not say.
  public var isPrivacyShutterClosed: Bool? {
    get throws(MediaError) { try flag(.privacy) }
  }

  /// Whether the picture is mirrored left to right; nil where the camera cannot.
  public var isVideoMirrored: Bool? {
    get throws(MediaError) {
      guard let isMirrored = try flag(.isMirrored) else { return nil }
      // Flipped both ways is turned upside down, and not mirrored.
      return try isMirrored != (flag(.isFlipped) ?? false)
    }
  }

  /// Mirrors the picture left to right, or not, and leaves its rotation: `V4L2_CID_HFLIP`.
  ///
  /// - Throws: `MediaError` with `.controlNotSupported`; `.deviceBusy` from cameras that cannot
  ///   while frames stream.
  public func setVideoMirrored(_ isMirrored: Bool) throws(MediaError) {
    try set(.isMirrored, isMirrored != (flag(.isFlipped) ?? false) ? 1 : 0)
  }

  /// By how many degrees the camera turns the picture, clockwise, from 0 to 359; nil where it
  /// cannot.
  public var videoRotationAngle: Int64? {
    get throws(MediaError) {
      let rotated = try number(.rotation)
      let isFlipped = try flag(.isFlipped)
      guard rotated != nil || (isFlipped != nil && has(.isMirrored)) else { return nil }
      return (((rotated ?? 0) % 360) + (isFlipped == true ? 540 : 360)) % 360
    }
  }

  /// Whether the camera can turn the picture by so many degrees.
  public func isVideoRotationAngleSupported(_ angle: Int64) -> Bool {
    if let control = try? find(.rotation) {
      return control.minimum <= angle && angle <= control.maximum
        && control.nearestValue(to: angle) == angle
    }
    return (angle == 0 || angle == 180) && has(.isMirrored) && has(.isFlipped)
  }

  /// Turns the picture, and leaves whether it is mirrored.
  ///
  /// The corresponding controls are `V4L2_CID_ROTATE`, or `V4L2_CID_HFLIP` and `V4L2_CID_VFLIP`
  /// together. A quarter turn may change the size of frames.
  ///
  /// - Parameter angle: Clockwise, in degrees.
  /// - Throws: `MediaError` with `.controlNotSupported`, also for angles that the camera lacks;
  ///   `.deviceBusy` from cameras that cannot while frames stream.
  public func setVideoRotationAngle(_ angle: Int64) throws(MediaError) {
    guard isVideoRotationAngleSupported(angle) else {
      throw missing("rotation by \(angle) degrees")
    }
    let isMirrored = try isVideoMirrored ?? false
    let turns = has(.rotation)
    let isFlipped = !turns && angle == 180
    if turns { try set(.rotation, angle) }
    try setIfPresent(.isFlipped, isFlipped ? 1 : 0)
    try setIfPresent(.isMirrored, isMirrored != isFlipped ? 1 : 0)
  }

  /// Whether a control is on, or nil where the device has none.
  private func flag(_ id: ControlID) throws(MediaError) -> Bool? {
    try number(id).map { $0 != 0 }
  }
}
