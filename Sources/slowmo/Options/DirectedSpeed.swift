// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A speed whose sign is the direction: `-1/2` plays backwards at half speed.
struct DirectedSpeed: Sendable {
  let speed: Speed
  let isReversed: Bool

  init(parsing text: String) throws(MediaError) {
    isReversed = text.hasPrefix("-")
    speed = try Speed(parsing: isReversed ? String(text.dropFirst()) : text)
  }

  /// Returns this speed for a range of the source.
  func change(in range: TimeRange) -> Composition.SpeedChange {
    Composition.SpeedChange(speed, in: range, isReversed: isReversed)
  }
}
