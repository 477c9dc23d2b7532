// SPDX-License-Identifier: Apache-2.0

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
