// SPDX-License-Identifier: Apache-2.0

/// A frame as its driver describes it, before anyone judges it.
package struct FrameStamp: Hashable, Sendable {
  /// The driver's count of frames, which goes on when frames are lost, and wraps at 2^32.
  package var sequence: UInt32
  /// The driver's time of the frame, in microseconds of the monotonic clock.
  package var microseconds: Int64
  /// Whether the driver marks the frame as damaged.
  package var isCorrupt = false
  /// Frames lost just before this one because no buffer was free, where the driver knows; nil
  /// where only the gap of the sequence tells.
  package var overrunsBefore: UInt32?

  package init(sequence: UInt32, microseconds: Int64) {
    self.sequence = sequence
    self.microseconds = microseconds
  }
}
