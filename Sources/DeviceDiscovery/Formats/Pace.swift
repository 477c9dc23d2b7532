// SPDX-License-Identifier: Apache-2.0

/// Whether the frames of a camera that needs no hardware wait for their time.
package enum Pace: Hashable, Sendable {
  /// Frames come at their times; who is late loses frames.
  case realTime
  /// Frames come as fast as they are taken; nothing is lost.
  case maximum

  /// The value of the option `pace` of a device name; nil for one that it cannot have.
  init?(option value: String) {
    guard value == "max" else { return nil }
    self = .maximum
  }
}
