// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import OvercrankPlayback

extension PlayerWindow {
  /// The size of a player's first frame after its rotation, or nil if the composition begins with a
  /// gap.
  static func clipSize(_ player: Player) -> PixelSize? {
    player.frameReference(at: .zero)?.asset.videoTrack.map { track in
      PixelSize(width: track.width, height: track.height).rotated(by: track.rotation)
    }
  }

  /// The size of a new window: the size in the settings or, if none is set, a size that fits the
  /// clips.
  ///
  /// Small clips are enlarged by an integer factor. Large clips are reduced to at most 1280x720.
  static func size(_ players: [Player], _ settings: PlayerWindowSettings) -> PixelSize {
    let clips = players.map { clipSize($0) ?? PixelSize(width: 640, height: 360) }
    var width = clips.map(\.width).reduce(0, +)
    var height = clips.map(\.height).max() ?? 360
    let factor = max(1, min(960 / max(1, width), 600 / max(1, height)))
    width *= factor
    height *= factor
    let (largestWidth, largestHeight) = (1_280, 720)
    width += WindowLayout.gap * (players.count - 1)
    if width > largestWidth { (width, height) = (largestWidth, height * largestWidth / width) }
    if height > largestHeight { (width, height) = (width * largestHeight / height, largestHeight) }
    width = settings.width > 0 ? settings.width : max(480, width)
    // A window of 1000 pixels is high enough for the complete panel, so the panel's height can be
    // read from its layout.
    let tall = PixelSize(width: width, height: 1_000)
    let panel = WindowLayout(tall, paneCount: players.count).panel.height
    return PixelSize(
      width: width, height: settings.height > 0 ? settings.height : max(180, height) + panel)
  }
}
