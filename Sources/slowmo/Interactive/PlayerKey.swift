// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The keys of `play` and their effects.
enum PlayerKey: String, CaseIterable {
  case space
  case stepBack = ","
  case stepForward = "."
  case slower = "["
  case faster = "]"
  case normal = "backspace"
  case reverse = "r"
  case loopStart = "a"
  case loopEnd = "b"
  case left
  case right
  case home
  case end
  case pitch = "p"
  case mute = "u"
  case mark = "m"
  case rangeStart = "i"
  case rangeEnd = "o"
  case speed1 = "1"
  case speed2 = "2"
  case speed3 = "3"
  case speed4 = "4"
  case speed5 = "5"
  case speed6 = "6"
  case speed7 = "7"
  case speed8 = "8"
  case speed9 = "9"
  case write = "w"
  case undo = "ctrl+z"
  case redo = "ctrl+y"
  case screenshot = "s"
  case windowScreenshot = "ctrl+s"
  case fullScreen = "f"
  case zoomIn = "alt++"
  case zoomOut = "alt+-"
  case zoomReset = "alt+backspace"
  case panLeft = "alt+left"
  case panRight = "alt+right"
  case panUp = "alt+up"
  case panDown = "alt+down"
  case nudgeBack = "alt+,"
  case nudgeForward = "alt+."
  case measure = "d"
  case writeAnnotations = "e"
  case help = "?"
  case quit = "q"

  /// Finds a key by the name of the key or of another key for the same action.
  init?(name: some StringProtocol) {
    self.init(rawValue: name == "h" || name == "f1" ? "?" : String(name))
  }

  /// The keys and their effects, as help shows them.
  static let descriptions = [
    KeyDescription("space", "pause"),
    KeyDescription(". ,", "next and previous frame"),
    KeyDescription("[ ] backspace", "half, double and normal speed"),
    KeyDescription("r", "reverse"),
    KeyDescription("left right", "1 s back and forward"),
    KeyDescription("home end", "start and end"),
    KeyDescription("a b", "start and end of a loop; b alone ends it"),
    KeyDescription("p u", "next pitch algorithm, mute"),
    KeyDescription("m", "set a mark, from which the time is shown"),
    KeyDescription("s", "write the frame as PNG"),
    KeyDescription("i o", "start and end of a range"),
    KeyDescription("1 to 9", "speed of the range: 8 is 1/8; without a range, of all"),
    KeyDescription("ctrl+z ctrl+y", "undo and redo marks, ranges and speeds"),
    KeyDescription("w", "export: write the whole edit to the file of -o"),
    KeyDescription("q", "quit"),
  ]

  /// The further keys of a window.
  static let windowDescriptions = [
    KeyDescription("? h f1", "show the keys"),
    KeyDescription("tab return", "choose a button, press it"),
    KeyDescription("d", "measure: drag for a distance, from its end for an angle"),
    KeyDescription("e", "write what was measured to the file of --annotations"),
    KeyDescription("f", "full screen"),
    KeyDescription("ctrl+s", "write the window as PNG"),
    KeyDescription("alt++ alt+- alt+backspace", "zoom in, zoom out, no zoom"),
    KeyDescription("alt+left alt+right", "move the image"),
    KeyDescription("alt+up alt+down", "move the image"),
    KeyDescription("alt+, alt+.", "with --beside: move the other clip by a frame"),
  ]

  /// The effects of the pointer in a window.
  static let pointerDescriptions = [
    KeyDescription("click", "pause; twice: full screen"),
    KeyDescription("drag", "on the time line: scrub; on the image: move it"),
    KeyDescription("wheel", "zoom at the pointer"),
    KeyDescription("after d", "click: point; drag with the right button: box"),
  ]

  /// The state that the buttons of a window show.
  struct ButtonState: Hashable {
    var isPlaying: Bool
    var isReversed: Bool
    var isMeasuring: Bool
  }

  /// The buttons of a window.
  static func buttons(_ state: ButtonState) -> [ViewButton] {
    [
      ViewButton(
        "space", state.isPlaying ? "pause" : "play ", "pause, play: space, or click the image"),
      ViewButton(",", "< step", "previous frame: ,"),
      ViewButton(".", "step >", "next frame: ."),
      ViewButton("[", "slower", "half speed: ["),
      ViewButton("]", "faster", "double speed: ]"),
      ViewButton("r", "reverse", "play backward: r", isOn: state.isReversed),
      ViewButton("i", "range start", "the range starts at this frame: i"),
      ViewButton("o", "range end", "the range ends at this frame: o; 1 to 9 set its speed"),
      ViewButton("m", "mark", "set a mark at this frame: m"),
      ViewButton("ctrl+z", "undo", "undo the last mark, range or speed: ctrl+z"),
      ViewButton("ctrl+y", "redo", "do it again: ctrl+y"),
      ViewButton("w", "export", "write the whole edit to the file of -o: w"),
      ViewButton("d", "measure", "draw distances, angles and boxes: d", isOn: state.isMeasuring),
      ViewButton("e", "save measures", "write the file of --annotations: e"),
      ViewButton("f", "full screen", "full screen or window: f, or double-click the image"),
      ViewButton("?", "keys ?", "show all keys: ? or h"),
    ]
  }

  /// The divisor of the speed that a digit sets: `8` is 1/8; nil for other keys.
  var speedDivisor: Int? { Int(rawValue) }

  /// The state that is kept from one key press to the next.
  struct Memory {
    /// The start of a loop whose end is not set yet.
    var loopStart: MediaTime?
    var rate: Rational
    /// The position from which times are measured.
    private(set) var mark: PlayerTime?
    /// A message about the effect of the last key; empty if the effect is visible on screen.
    private(set) var message = ""

    /// Performs the action of a key.
    ///
    /// - Returns: False for the key that ends playback, and true for all others.
    ///
    /// Keys that change the view, edit the clip or write a file have no effect here.
    mutating func press(_ key: PlayerKey, _ player: Player) throws(MediaError) -> Bool {
      message = ""
      switch key {
      case .space: if player.rate == .zero { try player.setRate(rate) } else { player.pause() }
      case .stepBack: player.step(by: -1)
      case .stepForward: player.step(by: 1)
      case .slower: try change(player) { $0 / 2 }
      case .faster: try change(player) { $0 * 2 }
      case .normal: try change(player) { $0 < .zero ? -1 : 1 }
      case .reverse: try change(player) { -$0 }
      case .loopStart:
        loopStart = time(player)
        message = "loop starts here"
      case .loopEnd: try endLoop(player)
      case .left, .right:
        let step: Rational = key == .left ? -1 : 1
        player.seek(to: PlayerKey.time(player.currentTime.composition + step))
      case .home: player.seek(to: .zero)
      case .end: player.seek(to: player.composition.duration)
      case .pitch:
        let all = AudioTimePitchAlgorithm.allCases
        let index = all.firstIndex(of: player.algorithm) ?? 0
        player.algorithm = all[(index + 1) % all.count]
        message = "pitch: \(player.algorithm.rawValue)"
      case .mute:
        player.isMuted.toggle()
        message = player.isMuted ? "muted" : "not muted"
      case .mark: mark = player.currentTime
      case .quit: return false
      case .screenshot, .windowScreenshot, .fullScreen, .zoomIn, .zoomOut, .zoomReset, .panLeft,
        .panRight, .panUp, .panDown, .rangeStart, .rangeEnd, .speed1, .speed2, .speed3, .speed4,
        .speed5, .speed6, .speed7, .speed8, .speed9, .write, .undo, .redo, .measure,
        .writeAnnotations, .help, .nudgeBack, .nudgeForward:
        break
      }
      return true
    }

    /// Changes the rate, limited to the range of the player; a paused player stays paused.
    private mutating func change(
      _ player: Player, _ body: (Rational) -> Rational
    ) throws(MediaError) {
      let wanted = body(rate)
      let magnitude = min(max(wanted.magnitude, Rational(1, over: 32)), 32)
      rate = wanted < .zero ? -magnitude : magnitude
      if player.rate != .zero { try player.setRate(rate) }
    }

    private func time(_ player: Player) -> MediaTime {
      PlayerKey.time(player.currentTime.composition)
    }

    /// Sets the loop from the stored start to the current time; without a stored start, removes the
    /// loop.
    private mutating func endLoop(_ player: Player) throws(MediaError) {
      guard let start = loopStart else { return try player.setLoop(nil) }
      let end = time(player)
      loopStart = nil
      guard start != end else { return }
      try player.setLoop(TimeRange(start: min(start, end), end: max(start, end)))
    }
  }

  /// Rounds a composition time to nanoseconds; a negative time becomes zero.
  static func time(_ seconds: Rational) -> MediaTime {
    MediaTime(nanoseconds: max(0, nanoseconds(seconds)))
  }
}
