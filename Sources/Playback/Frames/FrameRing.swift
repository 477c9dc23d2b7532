// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// The decoded frames of a player, within a memory budget.
///
/// The ring holds the frames that playback needs next, and as many of the frames already shown as
/// fit. So a step back, a change of direction and a short loop need no decoder.
struct FrameRing: Sendable {
  private struct Entry: Sendable {
    let image: MediaFrame
    /// The order of the last use.
    var stamp: Int
  }

  /// The memory for frames, in bytes.
  let budget: Int
  /// The memory in use, in bytes.
  private(set) var byteCount = 0
  private var entries: [FrameKey: Entry] = [:]
  private var failed: Set<FrameKey> = []
  private var stamp = 0
  /// The most frames to need at once, after a frame was refused; nil for no such limit.
  private var limit: Int?
  /// The position of each frame in the list of frames that are needed next.
  private var ranks: [FrameKey: Int] = [:]

  /// The fewest frames that the ring holds, even if they exceed the budget.
  static let minimumCount = 4

  init(budget: Int) { self.budget = budget }

  /// The number of frames.
  var count: Int { entries.count }

  /// The number of frames of the present size that fit.
  func capacity(estimated frameBytes: Int) -> Int {
    let size = entries.isEmpty ? frameBytes : byteCount / entries.count
    return max(Self.minimumCount, min(limit ?? .max, budget / max(1, size)))
  }

  /// Forgets that a frame was refused, when other frames are needed.
  mutating func resetLimit() { limit = nil }

  /// Returns a decoded frame, and counts as a use of it.
  mutating func image(_ key: FrameKey) -> MediaFrame? {
    stamp += 1
    entries[key]?.stamp = stamp
    return entries[key]?.image
  }

  /// Returns a decoded frame, without counting as a use of it.
  func decoded(_ key: FrameKey) -> MediaFrame? { entries[key]?.image }

  /// Returns the decoded frame nearest to one that is not decoded, among those from `first` on.
  func nearest(to key: FrameKey, from first: FrameKey) -> FrameKey? {
    entries.keys.filter { $0.isBetween(first, and: key) }
      .min { abs($0.frame - key.frame) < abs($1.frame - key.frame) }
  }

  /// Returns true if a frame needs no decoding: it is decoded, or cannot be.
  func needsNoDecoding(_ key: FrameKey) -> Bool { entries[key] != nil || failed.contains(key) }

  /// Returns true for a frame that cannot be decoded, and false otherwise.
  func isFailed(_ key: FrameKey) -> Bool { failed.contains(key) }

  /// Sets the frames that are needed next, in their order.
  mutating func need(_ keys: [FrameKey]) {
    ranks = [:]
    for (rank, key) in keys.enumerated() where ranks[key] == nil { ranks[key] = rank }
  }

  /// Adds a frame, and removes others to stay in the budget.
  ///
  /// Frames that are not needed go first, the least recently used one before the others. Then those
  /// go that are needed later than this one.
  ///
  /// - Returns: True if the frame was added, and false if the others are needed sooner.
  mutating func insert(_ image: MediaFrame, for key: FrameKey) -> Bool {
    stamp += 1
    guard entries[key] == nil else { return true }
    let size = image.byteCount
    while byteCount + size > budget, entries.count >= Self.minimumCount {
      guard let victim = victim(for: key) else {
        // Frames of different sizes may not fit together. Fewer are needed from now on, so that the
        // same frame is not decoded again and again.
        limit = min(limit ?? .max, entries.count) - 1
        return false
      }
      byteCount -= entries.removeValue(forKey: victim)?.image.byteCount ?? 0
    }
    entries[key] = Entry(image: image, stamp: stamp)
    byteCount += size
    return true
  }

  /// Adds a frame that is not needed now, if it replaces no frame that is.
  mutating func keep(_ image: MediaFrame, for key: FrameKey) {
    guard entries[key] == nil else { return }
    stamp += 1
    while byteCount + image.byteCount > budget {
      let unneeded = entries.filter { ranks[$0.key] == nil }.min { $0.value.stamp < $1.value.stamp }
      guard let unneeded else { return }
      byteCount -= entries.removeValue(forKey: unneeded.key)?.image.byteCount ?? 0
    }
    entries[key] = Entry(image: image, stamp: stamp)
    byteCount += image.byteCount
  }

  private func victim(for key: FrameKey) -> FrameKey? {
    let unneeded = entries.filter { ranks[$0.key] == nil }.min { $0.value.stamp < $1.value.stamp }
    if let unneeded { return unneeded.key }
    guard let last = ranks.filter({ entries[$0.key] != nil }).max(by: { $0.value < $1.value }),
      last.value > ranks[key] ?? .max
    else { return nil }
    return last.key
  }

  /// Marks frames as impossible to decode.
  mutating func fail(_ keys: some Sequence<FrameKey>) { failed.formUnion(keys) }
}
