// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankV4L2

/// The exposure settings of a streaming camera, as reported by its controls.
///
/// V4L2 does not report which values automatic exposure selects for each frame.
package struct ExposureInForce: Hashable, Sendable {
  /// The controls that define the exposure.
  ///
  /// A camera has only some of them.
  static let controls: [ControlID] = [
    .automaticExposure, .exposureTime, .automaticGain, .gain, .analogueGain,
  ]

  // Values as the driver reports them, 32 bits each. Nil for controls that the camera lacks.
  private var mode: Int32?
  private var time: Int32?
  private var automaticGain: Int32?
  private var gain: Int32?
  private var analogueGain: Int32?

  package init() {}

  /// Records the value of a control.
  mutating func note(_ control: ControlID, _ value: Int64?) {
    let value = value.flatMap(Int32.init(exactly:))
    switch control {
    case .automaticExposure: mode = value
    case .exposureTime: time = value
    case .automaticGain: automaticGain = value
    case .gain: gain = value
    case .analogueGain: analogueGain = value
    default: break
    }
  }

  /// Whether exposure is manual, or nil if the camera does not report it.
  var isByHand: Bool? {
    guard let mode else { return time == nil ? nil : true }
    return ControlID.automaticExposure.isManual(at: Int64(mode))
  }

  /// The exposure duration of a frame, or nil for automatic exposure.
  var duration: MediaTime? {
    guard isByHand == true, let time else { return nil }
    return CameraControls.duration(Int64(time))
  }

  /// The gain in the driver's unit, or nil for automatic gain.
  var gainValue: Int64? {
    guard isByHand == true, automaticGain ?? 0 == 0 else { return nil }
    return (gain ?? analogueGain).map(Int64.init)
  }
}
