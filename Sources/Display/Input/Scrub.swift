// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankPlayback

/// A drag on the time line: key frames while the pointer moves, the exact frame when it rests.
struct Scrub {
  /// The composition time under the pointer; nil without a drag.
  private(set) var target: Rational?
  private var hasMoved = false
  private var isExact = true
  private var rate = Rational.zero

  /// Pauses, and remembers the rate.
  mutating func begin(_ player: Player) {
    rate = player.rate
    player.pause()
  }

  mutating func move(to time: Rational) {
    guard target != time else { return }
    target = time
    (hasMoved, isExact) = (true, false)
  }

  /// Seeks once per refresh.
  mutating func update(_ player: Player) {
    guard let target, !isExact else { return }
    player.seek(to: time(target), tolerance: hasMoved ? .nearestKeyFrame : .exact)
    isExact = !hasMoved
    hasMoved = false
  }

  /// Seeks to the last time, and plays on if the player played before.
  mutating func end(_ player: Player) {
    guard let target else { return }
    player.seek(to: time(target))
    // The rate was the player's own.
    try? player.setRate(rate)
    self = Scrub()
  }

  private func time(_ seconds: Rational) -> MediaTime {
    let units = try? (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
    return MediaTime(nanoseconds: Int64(clamping: units ?? 0))
  }
}
