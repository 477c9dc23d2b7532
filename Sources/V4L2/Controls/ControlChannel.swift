// SPDX-License-Identifier: Apache-2.0

/// Access to the controls of a device, through the device itself or the queue that owns it.
package protocol ControlChannel: ~Copyable {
  /// The path of the device node, for error messages.
  var path: String { get }

  /// Makes an ioctl request. Returns its value, or a negative errno on failure.
  borrowing func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt
}

extension VideoDevice: ControlChannel {}
