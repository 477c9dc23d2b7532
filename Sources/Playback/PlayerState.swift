// SPDX-License-Identifier: Apache-2.0

/// The state of a player.
///
/// ```
///            seek                      frame decoded
///   any ───────────────▶ seeking ──────────────────────▶ paused or playing,
///                                                        as before the seek
///              play                  end of the composition
///   paused ──────────▶ playing ──────────────────────────▶ ended
///     │ ▲  ◀──────────   ▲ │                                 │
///     │ │     pause      │ │                     play        │
///     │ │                │ ◀─────────────────────────────────┘
///     │ │      host time │
///     │ └── scheduled ───┘
///     └────────▶
///        play at a host time
/// ```
///
/// Each row is a state, each column an input, and each cell the next state; a dash means that the
/// input changes nothing.
///
/// | | play | playLater | pause | seek | ready | readyToPlay | begin | reachEnd | close |
/// |---|---|---|---|---|---|---|---|---|---|
/// | paused | playing | scheduled | – | seeking | – | – | – | – | closed |
/// | seeking | – | scheduled | – | seeking | paused | playing | – | – | closed |
/// | scheduled | playing | scheduled | paused | seeking | – | – | playing | – | closed |
/// | playing | playing | scheduled | paused | seeking | – | – | – | ended | closed |
/// | ended | playing | scheduled | – | seeking | – | – | – | – | closed |
/// | closed | – | – | – | – | – | – | – | – | – |
///
/// While seeking, `play` and `pause` decide which state follows.
public enum PlayerState: String, Hashable, Sendable, CaseIterable {
  /// One frame is on screen; the rate is zero.
  case paused
  /// The frame of a new position is being decoded; time stands still.
  case seeking
  /// Playback starts at a given host time; until then, the position stands still.
  case scheduled
  /// The playback position moves at the playback rate.
  case playing
  /// The end was reached, or the start in reverse. The last frame stays on screen.
  case ended
  /// The player has released its resources.
  case closed

  /// An event that may change the state.
  enum Input: CaseIterable {
    case play, playLater, pause, seek, ready, readyToPlay, begin, reachEnd, close
  }

  /// Returns the next state, or the current state if the input changes nothing.
  func next(_ input: Input) -> PlayerState {
    switch (self, input) {
    case (.closed, _): .closed
    case (_, .close): .closed
    case (_, .seek): .seeking
    case (_, .playLater): .scheduled
    case (.paused, .play), (.scheduled, .play), (.playing, .play), (.ended, .play): .playing
    case (.scheduled, .pause), (.playing, .pause): .paused
    case (.seeking, .ready): .paused
    case (.seeking, .readyToPlay): .playing
    case (.scheduled, .begin): .playing
    case (.playing, .reachEnd): .ended
    default: self
    }
  }
}
