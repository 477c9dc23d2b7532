// SPDX-License-Identifier: Apache-2.0

/// An arrived frame: the values that the driver reported, and the times that the capture thread
/// measured.
///
/// The driver's values are kept unchanged, so that a take can be evaluated again. The driver code
/// creates the value, and the capture thread adds the time of arrival.
package struct FrameObservation: Hashable, Sendable {
  /// The driver's frame counter (`v4l2_buffer.sequence`).
  ///
  /// It also counts lost frames and wraps at 2^32.
  package var sequence: UInt32
  /// The driver's timestamp, in microseconds of the monotonic clock.
  package var driverMicroseconds: Int64
  /// Whether the driver marked the frame as damaged (V4L2_BUF_FLAG_ERROR).
  package var isMarkedCorrupt = false
  /// The number of frames lost just before this frame because the driver had no free buffer.
  ///
  /// Nil if the driver does not count them.
  package var overrunsBefore: UInt32?
  /// The driver's timestamp in microseconds, made continuous across wraps and jumps.
  package var microseconds: Int64
  /// Whether the driver's clock jumped at this frame.
  ///
  /// The interval before this frame is then meaningless.
  package var isClockJump = false
  /// The time at which the frame was dequeued, in microseconds of the driver's clock.
  package var arrival: Int64
  /// The time at which the program requeued the buffer that the driver then filled with this frame,
  /// in microseconds of the driver's clock.
  ///
  /// Drivers fill buffers in the order in which they were requeued. If all other buffers were
  /// already full, the driver had no free buffer before this time.
  package var oldestReturn = Int64.min
  /// The number of frames that arrived just before this frame but could not be recorded, because
  /// the recording queue was full even for notes.
  package var unnoted: Int64 = 0
  /// The outcome of the frame as far as it is known.
  ///
  /// The writer may still change it.
  package var outcome = FrameOutcome.taken

  /// Makes an observation from the driver's values.
  ///
  /// The arrival time is set to the timestamp.
  package init(sequence: UInt32, microseconds: Int64) {
    self.sequence = sequence
    driverMicroseconds = microseconds
    self.microseconds = microseconds
    arrival = microseconds
  }
}

/// The outcome of an arrived frame.
///
/// Raw values are part of the file format.
package enum FrameOutcome: UInt8, Hashable, Sendable {
  /// The frame was handed to the writer, or will be.
  case taken = 1
  /// The frame is damaged: marked by the driver, truncated, or undecodable.
  case corrupt
  /// The frame cannot be decoded because its reference frame never arrived.
  case unshowable
  /// The frame was dropped because the recording queue had no space for it.
  case refused
  /// The frame left the pre-trigger ring before a trigger.
  case evicted
  /// The first frame during a pause. It represents all frames of the pause.
  case paused
}
