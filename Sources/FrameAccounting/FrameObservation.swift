// SPDX-License-Identifier: Apache-2.0

/// An arrived frame: the driver's description and the capture thread's observations.
///
/// Raw driver values are kept unchanged, so that a take can be evaluated again. The driver code
/// makes the value; the capture thread adds the time of arrival.
package struct FrameObservation: Hashable, Sendable {
  /// The driver's frame counter (`v4l2_buffer.sequence`).
  ///
  /// It also counts lost frames and wraps at 2^32.
  package var sequence: UInt32
  /// The driver's timestamp, in microseconds of the monotonic clock.
  package var driverMicroseconds: Int64
  /// Whether the driver marked the frame as damaged (V4L2_BUF_FLAG_ERROR).
  package var isMarkedCorrupt = false
  /// Frames lost just before this one for lack of a free buffer; nil where the driver does not
  /// count them.
  package var overrunsBefore: UInt32?
  /// The driver's timestamp in microseconds, made continuous across wraps and jumps.
  package var microseconds: Int64
  /// Whether the driver's clock jumped at this frame, so the interval before it is meaningless.
  package var isClockJump = false
  /// The time at which the frame was dequeued, in microseconds of the driver's clock.
  package var arrival: Int64
  /// The return time of the oldest buffer, in microseconds of the driver's clock.
  ///
  /// With all other buffers full, the driver had no free buffer until then.
  package var oldestReturn = Int64.min
  /// Frames that arrived just before this one but found the record queue full.
  package var unnoted: Int64 = 0
  /// The outcome of the frame so far; the writer may still change it.
  package var outcome = FrameOutcome.taken

  /// Makes an observation with the driver's values.
  ///
  /// The arrival time defaults to the timestamp.
  package init(sequence: UInt32, microseconds: Int64) {
    self.sequence = sequence
    driverMicroseconds = microseconds
    self.microseconds = microseconds
    arrival = microseconds
  }
}
