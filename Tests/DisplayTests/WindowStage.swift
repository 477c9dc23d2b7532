// SPDX-License-Identifier: Apache-2.0

import CSDL2
import OvercrankAssets
import OvercrankEditing
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRaster
import TestSupport

@testable import OvercrankDisplay
@testable import OvercrankPlayback

/// A window without a screen.
///
/// Its players use a virtual clock and do their work on the test's thread.
final class WindowStage {
  let clock = VirtualClock()
  let players: [Player]
  let window: PlayerWindow

  /// Opens a window with one player, or with two players and the given origins.
  ///
  /// Both video drivers of SDL draw into memory: `dummy` without OpenGL, and `offscreen` with it.
  init(
    _ assets: [Asset], origins: [MediaTime] = [.zero, .zero],
    width: Int = 640, height: Int = 258, showsThumbnails: Bool = false,
    videoDriver: String = "dummy"
  ) throws {
    SDL_SetHint(SDL_HINT_VIDEODRIVER, videoDriver)
    var settings = PlayerSettings()
    settings.clock = clock
    settings.hasThreads = false
    let player = try Player(assets[0], settings: settings)
    var players = [player]
    if assets.count > 1 {
      players.append(
        try player.makeFollower(
          Composition(assets[1].mediaSource()), of: [assets[1]], origin: origins[1],
          besideOrigin: origins[0]))
    }
    self.players = players
    var look = PlayerWindowSettings()
    (look.width, look.height, look.showsThumbnails) = (width, height, showsThumbnails)
    window = try PlayerWindow(players, settings: look)
    try refresh()
  }

  var player: Player { players[0] }

  /// Decodes everything that is due, and shows the frame of the present time.
  func refresh() throws {
    // The first refresh applies a drag, and the second one shows the result.
    for _ in 0..<2 {
      players.forEach { $0.decodePending() }
      try window.present(at: clock.now)
    }
  }

  /// Advances the clock, and refreshes the window.
  func advance(by nanoseconds: Int64) throws {
    clock.advance(by: nanoseconds)
    try refresh()
  }

  /// Reads the number that is painted on the frame of a pane, from the pixels of the window.
  func number(pane: Int = 0) throws -> Int {
    let pixels = try window.pixels()
    let area = window.scene.layout.panes[pane]
    let size = VideoSize(width: PaintedBlocks.width, height: PaintedBlocks.height)
    let viewport = window.scene.panes[pane].viewport
    let scale = viewport.scale(of: size, in: area)
    let corner = viewport.imagePoint(
      at: Point(x: Double(area.x), y: Double(area.y)), of: size, in: area)
    return (0..<16).reduce(0) { number, block in
      let x = area.x + Int((Double(block * 8 + 4) - corner.x) * scale)
      let y = area.y + Int((16 - corner.y) * scale)
      return number | (pixels.color(x, y)[1] > 120 ? 1 << block : 0)
    }
  }
}

extension MediaFrame {
  /// The red, green and blue of a pixel of an RGB image.
  func color(_ x: Int, _ y: Int) -> [Int] {
    guard let start = planeData(0) else { return [] }
    return (0..<3).map { Int(start[y * bytesPerRow(0) + x * 3 + $0]) }
  }
}
