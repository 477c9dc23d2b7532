// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// A ring of held frames and drop notes between the capture thread and one consumer.
final class VideoSampleRing: Sendable {
  /// A held frame, or a note of a dropped frame with the reason.
  enum Entry {
    case held(BufferPool.HeldBuffer, FrameObservation, ExposureInForce)
    case dropped(FrameDropReason, FrameObservation)
  }

  private let entries: SPSCRing<Entry>
  var capacity: Int { entries.capacity }

  /// - Throws: `MediaError` with `.outOfMemory` when the system refuses the memory.
  init(capacity: Int) throws(MediaError) {
    entries = try MediaError.exhausting { () throws(SystemError) in
      try SPSCRing(capacity: capacity)
    }
  }

  /// How many entries wait.
  var count: Int { entries.count }

  /// Appends an entry.
  ///
  /// Returns false if the ring is full.
  func push(_ entry: Entry) -> Bool { entries.push(entry) }

  /// Whether the oldest entry is a drop note.
  var beginsWithNote: Bool {
    if case .dropped? = entries[entries.startNumber] { true } else { false }
  }

  /// Removes and returns the oldest entry, or nil.
  func pop() -> Entry? { entries.pop() }
}
