// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// A ring between the capture thread and one consumer.
///
/// It contains held frames and notes of dropped frames.
final class VideoSampleRing: Sendable {
  /// A held frame, or a note of a dropped frame with the reason.
  enum Entry {
    case held(BufferPool.HeldBuffer, FrameObservation, ExposureInForce)
    case dropped(FrameDropReason, FrameObservation)
  }

  private let entries: SPSCRing<Entry>
  var capacity: Int { entries.capacity }

  /// Creates an empty ring for a number of entries.
  ///
  /// - Throws: `MediaError` with `.outOfMemory` if the system cannot reserve the memory.
  init(capacity: Int) throws(MediaError) {
    entries = try CallStage.resources.converting { () throws(CallFailure) in
      try SPSCRing(capacity: capacity)
    }
  }

  /// The number of entries in the ring.
  var count: Int { entries.count }

  /// Appends an entry, or returns false if the ring is full.
  func push(_ entry: Entry) -> Bool { entries.push(entry) }

  /// Whether the oldest entry is a note of a dropped frame.
  var beginsWithNote: Bool {
    if case .dropped? = entries[entries.startNumber] { true } else { false }
  }

  /// The oldest entry, or nil if the ring is empty.
  var oldest: Entry? { entries[entries.startNumber] }

  /// Removes and returns the oldest entry, or returns nil if the ring is empty.
  func pop() -> Entry? { entries.pop() }
}
