// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

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
