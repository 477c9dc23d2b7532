// SPDX-License-Identifier: Apache-2.0

/// Access to the controls of a device: the device itself, or the queue that owns it.
package protocol ControlChannel: ~Copyable {
  /// The path of the device node, for error messages.
  var path: String { get }

  /// Makes an ioctl request. Returns a value or a negative errno.
  borrowing func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt
}

extension VideoDevice: ControlChannel {}
