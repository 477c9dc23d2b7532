// SPDX-License-Identifier: Apache-2.0

/// What became of a frame that arrived; the numbers are those in the records of a file.
package enum FrameOutcome: UInt8, Hashable, Sendable {
  /// The writer has it, or will.
  case taken = 1
  /// It arrived damaged, marked by the driver, too short or cut off, or nothing can be made of it.
  case corrupt
  /// It cannot be shown, because what it builds on was never in hand.
  case unshowable
  /// The queue had no room for it.
  case refused
  /// It left the pre-trigger ring without having been wanted.
  case evicted
  /// It is the first of those that came while the take was paused, and a note of them all.
  case paused
}
