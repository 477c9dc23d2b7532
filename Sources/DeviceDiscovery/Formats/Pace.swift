// SPDX-License-Identifier: Apache-2.0

/// The times at which a software camera delivers frames.
package enum Pace: Hashable, Sendable {
  /// Each frame is delivered at its presentation time. If the consumer is slow, frames are lost.
  case realTime
  /// Frames are delivered as fast as they are consumed, so no frame is lost.
  case maximum

  /// Parses the option `pace` of a device name, or returns nil for an invalid value.
  init?(option value: String) {
    guard value == "max" else { return nil }
    self = .maximum
  }
}
