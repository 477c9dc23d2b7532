// SPDX-License-Identifier: Apache-2.0

/// What of a device's driver controls are asked of and set through: the device itself, or the
/// queue that has taken it over.
package protocol ControlChannel: ~Copyable {
  /// The node, which errors name.
  var path: String { get }

  /// Makes a request, and answers with a value or a negative errno.
  borrowing func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt
}

extension VideoDevice: ControlChannel {}
