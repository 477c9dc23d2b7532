// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankEditing
import OvercrankMediaCore
import OvercrankPlayback
import OvercrankRetiming
import Synchronization
import TestSupport

/// A clock that the test case advances.
private final class SteppedClock: HostClock {
  private let nanoseconds = Mutex<Int64>(0)

  var now: MediaTime { MediaTime(nanoseconds: nanoseconds.withLock { $0 }) }

  func advance() { nanoseconds.withLock { $0 += 40_000_000 } }

  func sleep(until time: MediaTime) {}
}

/// The error for a player whose state is inconsistent.
struct WrongPlayback: Error, CustomStringConvertible {
  let description: String
}

extension FuzzCases {
  /// Plays a composition with random commands.
  ///
  /// The player must not hang, and each seek must end.
  func play(
    _ composition: Composition, _ asset: Asset, _ random: inout SeededGenerator
  ) throws {
    let clock = SteppedClock()
    var settings = PlayerSettings()
    settings.audioSink = MemoryAudioSink(clock: clock)
    settings.clock = clock
    settings.algorithm = .varispeed
    settings.frameMemory = 4 << 20
    settings.hasThreads = false
    let player = try Player(composition, of: [asset], settings: settings)
    for _ in 0..<6 {
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        try player.setRate([1, -1, 32, Rational(1, over: 32)].randomElement(using: &random) ?? 1)
      case 1: player.step(by: .random(in: -3...3, using: &random))
      case 2:
        let part = Rational(.random(in: 0...1_000, using: &random), over: 1_000)
        guard let time = MediaTime(exactly: composition.duration * part) else { continue }
        player.seek(
          to: time, tolerance: Bool.random(using: &random) ? .exact : .nearestKeyFrame)
      case 3: player.pause()
      default: player.play()
      }
      for _ in 0..<3 {
        clock.advance()
        player.renderAudio()
        player.decodePending()
        _ = player.frame(at: clock.now)
      }
      guard player.state != .seeking, player.ledger.isBalanced else {
        throw WrongPlayback(description: "state \(player.state), ledger \(player.ledger)")
      }
      _ = player.currentTime
    }
    player.close()
  }
}
