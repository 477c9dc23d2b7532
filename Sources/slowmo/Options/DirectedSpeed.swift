// SPDX-License-Identifier: Apache-2.0

import Overcrank

/// A speed with a sign for the direction: `-1/2` plays backwards at half speed.
struct DirectedSpeed: Sendable {
  let speed: Speed
  let isReversed: Bool

  init(parsing text: String) throws(MediaError) {
    isReversed = text.hasPrefix("-")
    speed = try Speed(parsing: isReversed ? String(text.dropFirst()) : text)
  }

  /// Applies this speed and direction to a range of the source.
  func change(in range: TimeRange) -> Composition.SpeedChange {
    Composition.SpeedChange(speed, in: range, isReversed: isReversed)
  }
}
