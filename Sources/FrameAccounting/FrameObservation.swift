// SPDX-License-Identifier: Apache-2.0

/// What the capture thread saw of a frame that arrived, before anyone judges it.
///
/// The raw values stay as the driver gave them, so that a take can be judged again.
package struct FrameObservation: Hashable, Sendable {
  /// The driver's own words.
  package var stamp: FrameStamp
  /// The driver's time in microseconds, made continuous where its clock wrapped or jumped.
  package var microseconds: Int64
  /// Whether the driver's clock jumped here, so that time says nothing about this interval.
  package var isClockJump = false
  /// When the frame was taken from the driver, in microseconds of the driver's clock.
  package var arrival: Int64
  /// When the buffer was given back that the driver would have needed, had all the others been
  /// full: until then a frame found no room.
  package var oldestReturn = Int64.min
  /// Frames that arrived just before this one, for which not even a note found room.
  package var unnoted: Int64 = 0
  /// What became of the frame, as far as is known: the writer may still find out otherwise.
  package var outcome = FrameOutcome.taken

  package init(stamp: FrameStamp, microseconds: Int64, arrival: Int64) {
    self.stamp = stamp
    self.microseconds = microseconds
    self.arrival = arrival
  }
}
