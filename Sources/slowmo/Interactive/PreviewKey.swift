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
  case quit = "q"
}

/// The action of a line of `preview --script`: a key or a tap.
enum PreviewAction {
  case key(PreviewKey)
  /// A tap at a point of the view, as fractions of its width and height from 0 to 1.
  case tap(x: Double, y: Double)

  init?(_ word: Substring) {
    guard word.hasPrefix("tap:") else {
      guard let key = PreviewKey(rawValue: String(word)) else { return nil }
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
