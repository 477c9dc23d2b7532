// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV
import OvercrankV4L2

extension V4L2Driver {
  func zoom(to factor: Double) -> Double? { crop.zoom(to: factor) }

  func flip(_ flips: FrameRotation) -> Bool {
    var wanted: [(id: ControlID, value: Int64)] = []
    if flips.flipsX { wanted.append((.isMirrored, 1)) }
    if flips.flipsY { wanted.append((.isFlipped, 1)) }
    if toggle(wanted.map(\.id)) { return true }
    // A driver without flips may still rotate by 180 degrees with its rotation control.
    guard flips.flipsX, flips.flipsY, let control = try? queue.control(.rotation),
      control.minimum <= 180, control.maximum >= 180, control.nearestValue(to: 180) == 180,
      (try? queue.number(of: .rotation)) == 0
    else { return false }
    return (try? queue.setDuringCapture(control, to: 180)) == 180
  }

  /// Toggles on/off controls of the camera: all of them or, if one cannot be set, none.
  ///
  /// For example, a flip that the user had switched on before the stream is switched off during the
  /// stream.
  private func toggle(_ ids: [ControlID]) -> Bool {
    var changed: [(control: DeviceControl, before: Int64)] = []
    for id in ids {
      if let control = try? queue.control(id), control.isWritable,
        let before = (try? queue.number(of: id)) ?? nil,
        (try? queue.setDuringCapture(control, to: before == 0 ? 1 : 0)) != nil
      {
        changed.append((control, before))
        continue
      }
      for change in changed { _ = try? queue.setDuringCapture(change.control, to: change.before) }
      return false
    }
    return true
  }

  func stabilize(_ isOn: Bool) {
    guard let control = try? queue.control(.imageStabilization) else { return }
    // If the camera rejects the change, its setting stays. The connection reports the setting in
    // effect.
    _ = try? queue.setDuringCapture(control, to: isOn ? 1 : 0)
  }

  var isStabilizing: Bool? {
    guard let number = try? queue.number(of: .imageStabilization) else { return nil }
    return number != 0
  }
}
