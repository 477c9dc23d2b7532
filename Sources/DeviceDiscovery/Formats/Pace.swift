// SPDX-License-Identifier: Apache-2.0

/// The pacing of frames from a software camera.
package enum Pace: Hashable, Sendable {
  /// Frames are delivered at their times.
  ///
  /// A slow consumer loses frames.
  case realTime
  /// Frames are delivered as fast as they are consumed.
  ///
  /// No frame is lost.
  case maximum

  /// Parses the option `pace` of a device name.
  ///
  /// Nil for an invalid value.
  init?(option value: String) {
    guard value == "max" else { return nil }
    self = .maximum
  }
}
