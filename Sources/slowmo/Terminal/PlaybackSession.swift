// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization

/// A playback without a window: asks for the frame of each refresh, and presses the keys of a script.
final class PlaybackSession: Sendable {
  /// An event of the player, or a key.
  struct Entry: Sendable {
    enum Content: Sendable {
      case event(PlayerEvent.Kind)
      case key(PlayerKey)
    }
    let content: Content
    let hostTime: MediaTime
  }

  private let player: Player
  private let rate: Rational
  private let keys: [ScriptedKey]?
  private let period: Rational
  private let clock = MonotonicHostClock()
  private let start: MediaTime
  private let log = Mutex<[Entry]>([])

  /// Prepares a playback, which waits for the first frame; without keys, it plays to the end.
  init(_ player: Player, rate: Rational, keys: [ScriptedKey]?, refresh: FrameRate) {
    (self.player, self.rate, self.keys) = (player, rate, keys)
    period = refresh.frameDuration.seconds
    while player.state == .seeking, !Interrupt.isRequested {
      clock.sleep(until: Self.millisecond(after: clock.now))
    }
    // The first frame is on screen before time runs, so a late refresh cannot hide it.
    start = clock.now
    _ = player.frame(at: start)
  }

  private static func millisecond(after time: MediaTime) -> MediaTime {
    MediaTime(exactly: time + MediaTime(1, over: 1_000)) ?? time
  }

  /// The events and keys in the order of their times.
  var entries: [Entry] { log.withLock { $0.sorted { $0.hostTime < $1.hostTime } } }

  /// Returns the time since the start, in nanoseconds.
  func elapsed(at time: MediaTime) -> Int64 { nanoseconds(time - start) }

  /// Plays until the end, the last key or a signal.
  func play() throws {
    let isLogged = DispatchSemaphore(value: 0)
    let events = player.events
    Task { [self] in
      for await event in events { add(.event(event.kind), event.hostTime) }
      isLogged.signal()
    }
    defer { PlaybackStatus.end() }
    try refreshUntilEnd()
    // Closing ends the stream of events, so none is missed.
    player.close()
    isLogged.wait()
  }

  private func refreshUntilEnd() throws {
    var memory = PlayerKey.Memory(rate: rate)
    try player.setRate(rate)
    var (next, refresh) = (0, Int64(0))
    while !Interrupt.isRequested {
      let due = time(after: period * Rational(refresh))
      while let keys, next < keys.count {
        let at = time(after: Rational(Int128(keys[next].time), over: 1_000_000_000))
        guard at <= due else { break }
        clock.sleep(until: at)
        add(.key(keys[next].key), clock.now)
        guard try memory.press(keys[next].key, player) else { return }
        next += 1
      }
      if let keys, next >= keys.count { return }
      clock.sleep(until: due)
      let frame = player.frame(at: due)
      PlaybackStatus.show(player, frame)
      // Refreshes that have passed are not made up for, as on a screen.
      let behind = try ((clock.now - due) / period).rounded(.towardNegativeInfinity)
      refresh += 1 + Int64(clamping: max(0, behind))
      if keys == nil, player.state == .ended { return }
    }
  }

  private func add(_ content: Entry.Content, _ time: MediaTime) {
    log.withLock { $0.append(Entry(content: content, hostTime: time)) }
  }

  /// Returns the host time after a number of seconds, rounded to a nanosecond.
  private func time(after seconds: Rational) -> MediaTime {
    MediaTime(nanoseconds: nanoseconds(start.seconds + seconds))
  }
}

/// The line that shows the position on a terminal.
enum PlaybackStatus {
  private static let isOn = isatty(STDERR_FILENO) != 0

  /// Replaces the line.
  static func show(_ player: Player, _ frame: PlayerFrame?) {
    guard isOn else { return }
    let time = player.currentTime
    var text = ""
    if let source = time.source, let index = source.frameIndex {
      text = "frame \(index)/\(source.frameCount) · "
    }
    text += "\(decimal(time.composition.doubleValue, 6)) s · \(player.rate.displayText)"
    Output.write(("\r\u{1B}[K" + text).systemBytes, to: STDERR_FILENO)
  }

  /// Ends the line.
  static func end() {
    guard isOn else { return }
    Output.write("\r\u{1B}[K".systemBytes, to: STDERR_FILENO)
  }
}
