// SPDX-License-Identifier: Apache-2.0

public import OvercrankMediaCore
import OvercrankV4L2
import Synchronization

/// Who decides how bright the picture is.
public enum ExposureMode: String, Hashable, Sendable, CaseIterable {
  /// What the camera last chose stays.
  case locked
  /// The camera chooses once; no V4L2 camera can be told so.
  case autoExpose
  /// The camera chooses whenever the light changes.
  case continuousAutoExposure
  /// Duration and gain are set by hand.
  case custom
}

/// How long each frame is exposed, and how much the signal is amplified.
public struct ExposureSetting: Hashable, Sendable {
  /// The duration, or nil where the camera does not say.
  public let duration: MediaTime?
  /// The gain in the driver's unit, or nil where the camera does not say.
  public let gain: Int64?
}
