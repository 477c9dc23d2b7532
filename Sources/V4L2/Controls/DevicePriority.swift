// SPDX-License-Identifier: Apache-2.0

import CVideo4Linux
package import OvercrankMediaCore

/// The priority among programs that share a device: `V4L2_PRIORITY_…`.
package enum DevicePriority: UInt32, Hashable, Sendable, Comparable {
  /// For unattended background programs.
  case background = 1
  /// For interactive programs. Every handle starts with this priority.
  case interactive = 2
  /// For recording: no other program may change the device.
  case record = 3

  package static func < (left: DevicePriority, right: DevicePriority) -> Bool {
    left.rawValue < right.rawValue
  }
}

extension ControlChannel where Self: ~Copyable {
  /// Reads the highest priority of all open handles: `VIDIOC_G_PRIORITY`.
  ///
  /// - Returns: The priority. Nil if no handle has one or the driver does not support priorities.
  /// - Throws: ``CallFailure`` with the operation `.readPriority` and the reason `.unplugged`.
  package borrowing func priority() throws(CallFailure) -> DevicePriority? {
    var priority = V4L2_PRIORITY_UNSET
    let result = control(CVideo4Linux_VIDIOC_G_PRIORITY, &priority)
    if result == -ENOTTY || result == -EINVAL { return nil }
    try CallFailure.check(result, .readPriority, path)
    return DevicePriority(rawValue: priority.rawValue)
  }

  /// Sets the priority of this open handle: `VIDIOC_S_PRIORITY`.
  ///
  /// Closing the handle releases the priority.
  ///
  /// - Throws: ``CallFailure`` with the operation `.setPriority`. The kind is `.busy` if another
  ///   program has a higher priority, or `.notSupported` if the driver does not support priorities.
  package borrowing func setPriority(_ priority: DevicePriority) throws(CallFailure) {
    var wanted = v4l2_priority(rawValue: priority.rawValue)
    let result = control(CVideo4Linux_VIDIOC_S_PRIORITY, &wanted)
    try CallFailure.check(result == -ENOTTY ? -ENOTSUP : result, .setPriority, path)
  }
}
