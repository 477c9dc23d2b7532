// SPDX-License-Identifier: Apache-2.0

import OvercrankFrameAccounting
import OvercrankLinuxSystem
import OvercrankMediaCore

/// Held frames, or notes of dropped ones, on their way from the capture thread to one other.
final class VideoSampleRing: Sendable {
  /// A frame that is held, or why one is not.
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

  /// Adds an entry; false where there is no room.
  func push(_ entry: Entry) -> Bool { entries.push(entry) }

  /// Whether the oldest entry, if there is one, is a note.
  var beginsWithNote: Bool {
    if case .dropped? = entries[entries.startNumber] { true } else { false }
  }

  /// The oldest entry, or nil.
  func pop() -> Entry? { entries.pop() }
}
