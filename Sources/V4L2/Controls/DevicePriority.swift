// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux

/// Who may change a device that several programs have open: `V4L2_PRIORITY_…`.
package enum DevicePriority: UInt32, Hashable, Sendable, Comparable {
  /// For programs that nobody watches.
  case background = 1
  /// For programs that somebody uses; every program's, unless it says otherwise.
  case interactive = 2
  /// For recordings: nobody else may change the device.
  case record = 3

  package static func < (left: DevicePriority, right: DevicePriority) -> Bool {
    left.rawValue < right.rawValue
  }
}

extension ControlChannel where Self: ~Copyable {
  /// Reads the highest priority that any program has on the device: `VIDIOC_G_PRIORITY`.
  ///
  /// - Returns: The priority, or nil where nobody has one or the driver keeps none.
  /// - Throws: ``DeviceError`` for `.readPriority`: `.unplugged`.
  package borrowing func priority() throws(DeviceError) -> DevicePriority? {
    var priority = V4L2_PRIORITY_UNSET
    let result = control(CVideo4Linux_VIDIOC_G_PRIORITY, &priority)
    if result == -ENOTTY || result == -EINVAL { return nil }
    try DeviceError.check(result, .readPriority, path)
    return DevicePriority(rawValue: priority.rawValue)
  }

  /// Sets the priority of this open handle: `VIDIOC_S_PRIORITY`.
  ///
  /// It is given up when the handle is closed.
  ///
  /// - Throws: ``DeviceError`` for `.setPriority`: `.busy` where another program has a higher one;
  ///   `.notSupported` where the driver keeps none.
  package borrowing func setPriority(_ priority: DevicePriority) throws(DeviceError) {
    var wanted = v4l2_priority(rawValue: priority.rawValue)
    let result = control(CVideo4Linux_VIDIOC_S_PRIORITY, &wanted)
    try DeviceError.check(result == -ENOTTY ? -ENOTSUP : result, .setPriority, path)
  }
}
