// SPDX-License-Identifier: Apache-2.0

/// A frame that arrived, as its driver describes it and as the capture thread saw it.
///
/// The raw values stay as the driver gave them, so that a take can be judged again. The driver
/// makes the value; the capture thread fills in when the frame came.
package struct FrameObservation: Hashable, Sendable {
  /// The driver's count of frames, which goes on when frames are lost, and wraps at 2^32.
  package var sequence: UInt32
  /// The driver's time of the frame, in microseconds of the monotonic clock.
  package var driverMicroseconds: Int64
  /// Whether the driver marks the frame as damaged.
  package var isMarkedCorrupt = false
  /// Frames lost just before this one because no buffer was free, where the driver knows; nil
  /// where only the gap of the sequence tells.
  package var overrunsBefore: UInt32?
  /// The driver's time in microseconds, made continuous where its clock wrapped or jumped.
  package var microseconds: Int64
  /// Whether the driver's clock jumped here, so that time says nothing about this interval.
  package var isClockJump = false
  /// When the frame was taken from the driver, in microseconds of the driver's clock.
  package var arrival: Int64
  /// When the buffer was given back that the driver would have needed, had all the others been
  /// full: until then a frame found no buffer.
  package var oldestReturn = Int64.min
  /// Frames that arrived just before this one, for which not even a note found room.
  package var unnoted: Int64 = 0
  /// What became of the frame, as far as is known: the writer may still find out otherwise.
  package var outcome = FrameOutcome.taken

  /// Describes a frame as its driver does; it arrives at the driver's time unless set otherwise.
  package init(sequence: UInt32, microseconds: Int64) {
    self.sequence = sequence
    driverMicroseconds = microseconds
    self.microseconds = microseconds
    arrival = microseconds
  }
}
