// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankPlayback
import OvercrankRaster

/// The thumbnails above a time line.
///
/// Each thumbnail covers an equal part of the duration, and shows the frame in the middle of that
/// part.
struct ThumbnailLine {
  private struct Arrangement: Hashable {
    let slots: [PixelRect]
    let composition: Composition
  }

  private var arrangement: Arrangement?
  private var keys: [ThumbnailLoader.Key?] = []
  private var decoded: [ThumbnailLoader.Key: MediaFrame] = [:]
  /// The size of each thumbnail in pixels, or nil for a thumbnail that is not decoded yet.
  private(set) var sizes: [VideoSize?] = []

  /// Updates which frame each thumbnail shows and where, after a change of the window or of the
  /// composition.
  ///
  /// - Returns: The frames that must be decoded, or nil if no thumbnail changed.
  mutating func update(
    _ scene: PlayerScene, _ composition: Composition, _ player: Player
  ) -> [Player.FrameReference]? {
    let slots = scene.layout.thumbnailSlots(aspect: scene.thumbnailAspect)
    let next = Arrangement(slots: slots, composition: composition)
    guard next != arrangement else { return nil }
    arrangement = next
    let count = Int64(max(1, slots.count))
    let references = slots.indices.map { slot in
      player.frameReference(
        at: scene.timeline.duration * Rational(Int128(2 * slot + 1), over: Int128(2 * count)))
    }
    keys = references.map { reference in
      reference.map { ThumbnailLoader.Key(path: $0.asset.path, index: $0.index) }
    }
    decoded = decoded.filter { keys.contains($0.key) }
    sizes = keys.map { _ in nil }
    return references.compactMap { $0 }.filter {
      decoded[ThumbnailLoader.Key(path: $0.asset.path, index: $0.index)] == nil
    }
  }

  /// Stores decoded images and assigns them to the thumbnails that show them.
  ///
  /// - Returns: The thumbnails that received an image in this call.
  mutating func add(
    _ images: [(key: ThumbnailLoader.Key, image: MediaFrame)]
  ) -> [(slot: Int, image: MediaFrame)] {
    for (key, image) in images { decoded[key] = image }
    var found: [(slot: Int, image: MediaFrame)] = []
    for (slot, key) in keys.enumerated() where sizes[slot] == nil {
      guard let key, let image = decoded[key] else { continue }
      sizes[slot] = VideoSize(width: image.width, height: image.height)
      found.append((slot, image))
    }
    return found
  }
}
