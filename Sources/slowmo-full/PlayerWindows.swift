// SPDX-License-Identifier: Apache-2.0

import Overcrank
import OvercrankDisplay
import SlowmoCommands

/// Opens the windows of `play`.
struct PlayerWindows: PlaybackWindowProvider {
  func checkDisplay() throws(MediaError) { try PlayerWindow.checkDisplay() }

  func open(
    _ players: [Player], clipNames: [String]
  ) throws(MediaError) -> any PlaybackWindow {
    let names = clipNames.map { $0.split(separator: "/").last.map(String.init) ?? $0 }
    var settings = PlayerWindowSettings()
    settings.title = names.joined(separator: " | ")
    // The name of a single clip is shown only in the window's title, and not on the image.
    if names.count > 1 { settings.clipNames = names }
    return try PlayerWindow(players, settings: settings)
  }

  func chooseFile(
    _ lines: [KeyDescription], until isOver: () -> Bool
  ) throws(MediaError) -> String? {
    let window = try FileDropWindow(title: "slowmo play", lines: lines)
    while !isOver() {
      for input in window.takeInput() {
        switch input {
        case .dropped(let path): return path
        case .closed, .key("q"), .key("escape"): return nil
        case .key: break
        }
      }
      // The wait is short, because a signal does not end it.
      window.waitForInput(milliseconds: 100)
    }
    return nil
  }
}

extension PlayerWindow: PlaybackWindow {
  package func takeKeys() -> [String]? {
    var keys: [String] = []
    for input in takeInput() {
      switch input {
      case .key(let name): keys.append(name)
      case .dropped: break
      case .closed: return nil
      }
    }
    return keys
  }
}
