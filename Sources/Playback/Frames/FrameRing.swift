// SPDX-License-Identifier: Apache-2.0

import OvercrankLibAV

/// The decoded frames of a player, within a memory budget.
///
/// The ring holds the frames that playback needs next, and as many of the frames already shown as
/// fit. So stepping back, changing the direction and repeating a short loop need no decoding.
struct FrameRing: Sendable {
  private struct Entry: Sendable {
    let image: MediaFrame
    /// A number that increases with each use of any frame; the lowest belongs to the least recently
    /// used frame.
    var stamp: Int
  }

  /// The limit on the memory for decoded frames, in bytes.
  let budget: Int
  /// The memory that the decoded frames use, in bytes.
  private(set) var byteCount = 0
  private var entries: [FrameKey: Entry] = [:]
  private var failed: Set<FrameKey> = []
  private var stamp = 0
  /// The greatest number of frames to ask for at once, set when a frame did not fit; nil for no
  /// limit.
  private var limit: Int?
  /// The rank of each needed frame: 0 for the frame that is needed first.
  private var ranks: [FrameKey: Int] = [:]

  /// The fewest frames that the ring holds, even if they exceed the budget.
  static let minimumCount = 4

  init(budget: Int) { self.budget = budget }

  /// The number of decoded frames.
  var count: Int { entries.count }

  /// The number of frames that fit in the budget, by their average size so far or an estimate.
  func capacity(estimated frameBytes: Int) -> Int {
    let size = entries.isEmpty ? frameBytes : byteCount / entries.count
    return max(Self.minimumCount, min(limit ?? .max, budget / max(1, size)))
  }

  /// Removes the limit that was set when a frame was refused.
  ///
  /// Call it when different frames become needed.
  mutating func resetLimit() { limit = nil }

  /// Returns a decoded frame, and marks it as most recently used.
  mutating func image(_ key: FrameKey) -> MediaFrame? {
    stamp += 1
    entries[key]?.stamp = stamp
    return entries[key]?.image
  }

  /// Returns a decoded frame, without marking it as used.
  func decoded(_ key: FrameKey) -> MediaFrame? { entries[key]?.image }

  /// Returns the decoded frame between `first` and `key` that is nearest to `key`.
  func nearest(to key: FrameKey, from first: FrameKey) -> FrameKey? {
    entries.keys.filter { $0.isBetween(first, and: key) }
      .min { abs($0.frame - key.frame) < abs($1.frame - key.frame) }
  }

  /// Returns true if a frame needs no decoding, because it is decoded or cannot be decoded.
  func needsNoDecoding(_ key: FrameKey) -> Bool { entries[key] != nil || failed.contains(key) }

  /// Sets the list of frames that are needed next, the most urgent first.
  mutating func need(_ keys: [FrameKey]) {
    ranks = [:]
    for (rank, key) in keys.enumerated() where ranks[key] == nil { ranks[key] = rank }
  }

  /// Adds a frame, and removes other frames to stay within the budget.
  ///
  /// Frames that are not needed are removed first, starting with the least recently used. Then
  /// frames are removed that are needed later than the new one.
  ///
  /// - Returns: True if the frame was added, false if all other frames are needed sooner.
  mutating func insert(_ image: MediaFrame, for key: FrameKey) -> Bool {
    stamp += 1
    guard entries[key] == nil else { return true }
    let size = image.byteCount
    while byteCount + size > budget, entries.count >= Self.minimumCount {
      guard let victim = victim(for: key) else {
        // Frames of different sizes may not fit together. From now on fewer frames are asked for,
        // so that this one is not decoded again and again.
        limit = min(limit ?? .max, entries.count) - 1
        return false
      }
      byteCount -= entries.removeValue(forKey: victim)?.image.byteCount ?? 0
    }
    entries[key] = Entry(image: image, stamp: stamp)
    byteCount += size
    return true
  }

  /// Adds a frame that is not needed now, if that removes no needed frame.
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

  /// Marks frames that cannot be decoded.
  mutating func fail(_ keys: some Sequence<FrameKey>) { failed.formUnion(keys) }
}
