// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankPlayback

/// A drag on the time line: the player shows key frames while the pointer moves, and the exact
/// frame when the pointer rests.
struct Scrub {
  /// The composition time under the pointer; nil while nothing is dragged.
  private(set) var target: Rational?
  private var hasMoved = false
  private var isExact = true
  private var rate = Rational.zero

  /// Pauses the player and stores the rate at which it was playing.
  mutating func begin(_ player: Player) {
    rate = player.rate
    player.pause()
  }

  mutating func move(to time: Rational) {
    guard target != time else { return }
    target = time
    (hasMoved, isExact) = (true, false)
  }

  /// Seeks the player to the pointer's time.
  ///
  /// Call this once per screen refresh.
  mutating func update(_ player: Player) {
    guard let target, !isExact else { return }
    player.seek(to: time(target), tolerance: hasMoved ? .nearestKeyFrame : .exact)
    isExact = !hasMoved
    hasMoved = false
  }

  /// Seeks to the pointer's last time, and continues playback if the player was playing before the
  /// drag.
  mutating func end(_ player: Player) {
    guard let target else { return }
    player.seek(to: time(target))
    // Setting this rate cannot fail, because the rate was read from the same player.
    try? player.setRate(rate)
    self = Scrub()
  }

  private func time(_ seconds: Rational) -> MediaTime {
    let units = try? (seconds * 1_000_000_000).rounded(.halfAwayFromZero)
    return MediaTime(nanoseconds: Int64(clamping: units ?? 0))
  }
}
