// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// The keys of `preview` and their effects.
enum PreviewKey: String, CaseIterable {
  case peaking = "p"
  case zebra = "z"
  case histogram = "h"
  case mirror = "m"
  case gravity = "g"
  case photo = "s"
  case windowScreenshot = "ctrl+s"
  case longerDelay = "up"
  case shorterDelay = "down"
  case slower = "["
  case faster = "]"
  case resetClipping = "c"
  case help = "?"
  case quit = "q"

  /// Finds a key by the name of the key or of another key for the same action.
  init?(name: some StringProtocol) {
    self.init(rawValue: name == "f1" ? "?" : String(name))
  }

  /// The keys and their effects, as help shows them.
  static let descriptions = [
    KeyDescription("p z h", "focus peaking, zebra, histogram"),
    KeyDescription("m g", "mirror, gravity"),
    KeyDescription("up down", "1 s more and less delay"),
    KeyDescription("[ ]", "half and double speed"),
    KeyDescription("s ctrl+s", "take a photo (preview-0001.jpg), write the window as PNG"),
    KeyDescription("c", "clear the overload mark of the audio level"),
    KeyDescription("? f1", "show the keys in the window"),
    KeyDescription("q", "quit"),
  ]
}

/// The action of a line of `preview --script`: a key or a tap.
enum PreviewAction {
  case key(PreviewKey)
  /// A tap at a point of the view, as fractions of its width and height from 0 to 1.
  case tap(x: Double, y: Double)

  init?(_ word: Substring) {
    guard word.hasPrefix("tap:") else {
      guard let key = PreviewKey(name: word) else { return nil }
      self = .key(key)
      return
    }
    let parts = word.dropFirst(4).split(separator: ",").map { Double($0) }
    guard parts.count == 2, let x = parts[0], let y = parts[1], (0...1).contains(x),
      (0...1).contains(y)
    else { return nil }
    self = .tap(x: x, y: y)
  }
}
