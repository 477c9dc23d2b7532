// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankV4L2

/// How a camera exposes while it streams, as far as its controls tell: what an automatic chooses
/// for one frame or the next, no V4L2 camera says.
package struct ExposureInForce: Hashable, Sendable {
  /// The controls that tell; a camera has some of them.
  static let controls: [ControlID] = [
    .automaticExposure, .exposureTime, .automaticGain, .gain, .analogueGain,
  ]

  // As the driver holds them, 32 bits each; nil where the camera has no such control.
  private var mode: Int32?
  private var time: Int32?
  private var automaticGain: Int32?
  private var gain: Int32?
  private var analogueGain: Int32?

  package init() {}

  /// Notes what a control holds.
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

  /// Whether duration and gain are set by hand; nil where the camera tells nothing of exposure.
  var isByHand: Bool? {
    guard let mode else { return time == nil ? nil : true }
    return ControlID.automaticExposure.isManual(at: Int64(mode))
  }

  /// How long a frame is exposed; nil where that is not set by hand.
  var duration: MediaTime? {
    guard isByHand == true, let time else { return nil }
    return CameraControls.duration(Int64(time))
  }

  /// The gain in the driver's unit; nil where that is not set by hand.
  var gainValue: Int64? {
    guard isByHand == true, automaticGain ?? 0 == 0 else { return nil }
    return (gain ?? analogueGain).map(Int64.init)
  }
}
