// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Overcrank
import OvercrankLinuxSystem
import Synchronization

/// A playback: requests the frame for each refresh, and performs the keys of a script or a window.
final class PlaybackSession: Sendable {
  /// An event of the player, a key press, or a file that was written.
  struct Entry: Sendable {
    enum Content: Sendable {
      case event(PlayerEvent.Kind)
      case key(PlayerKey)
      case screenshot(String)
    }
    let content: Content
    let hostTime: MediaTime
  }

  private let player: Player
  private let file: String
  private let rate: Rational
  private let keys: [ScriptLine<PlayerKey>]?
  private let period: Rational
  private let clock = MonotonicHostClock()
  private let start: MediaTime
  private let log = Mutex<[Entry]>([])

  /// Prepares a playback, and waits until the first frame is decoded.
  ///
  /// Without keys and without a window, playback runs to the end.
  init(
    _ player: Player, of file: String, rate: Rational, keys: [ScriptLine<PlayerKey>]?,
    refresh: FrameRate
  ) {
    (self.player, self.file, self.rate, self.keys) = (player, file, rate, keys)
    period = refresh.frameDuration.seconds
    while player.state == .seeking, !Interrupt.isRequested {
      clock.sleep(until: Self.millisecond(after: clock.now))
    }
    // The first frame is shown before the clock of the playback starts, so that a late refresh
    // cannot miss it.
    start = clock.now
    _ = player.frame(at: start)
  }

  private static func millisecond(after time: MediaTime) -> MediaTime {
    MediaTime(exactly: time + MediaTime(1, over: 1_000)) ?? time
  }

  /// The events and keys, ordered by time.
  var entries: [Entry] { log.withLock { $0.sorted { $0.hostTime < $1.hostTime } } }

  /// Returns the time since the start of playback, in nanoseconds.
  func elapsed(at time: MediaTime) -> Int64 { nanoseconds(time - start) }

  /// Plays until the end of the content, the last key, a signal, or the closing of the window.
  ///
  /// - Parameters:
  ///   - window: The window; nil for a terminal.
  ///   - follower: The player of the other clip; nil for none.
  ///   - project: The edits.
  ///   - annotations: The shapes that are drawn.
  ///   - check: Throws if a file that the user dropped cannot be played.
  /// - Returns: The file that the user dropped on the window, which ends this playback; nil for none.
  /// - Throws: `MediaError` if the window fails; with a script, also `CommandError` for a failed step.
  func play(
    in window: (any PlaybackWindow)?, beside follower: Player?, editing project: PlaybackProject,
    annotating annotations: PlaybackAnnotations, check: @escaping (String) throws -> Void
  ) throws -> String? {
    let isLogged = DispatchSemaphore(value: 0)
    let events = player.events
    Task { [self] in
      for await event in events { add(.event(event.kind), event.hostTime) }
      isLogged.signal()
    }
    defer { PlaybackStatus.end() }
    // Closing the player ends its stream of events. Waiting for that end ensures that no event is
    // missed.
    defer {
      player.close()
      isLogged.wait()
    }
    let view = PlaybackView(
      player, file, rate, project, annotations, window, beside: follower,
      stopsAtError: keys != nil, check: check)
    try refreshUntilEnd(view)
    return view.droppedFile
  }

  private func refreshUntilEnd(_ view: PlaybackView) throws {
    try player.setRate(rate)
    var (next, refresh) = (0, Int64(0))
    while !Interrupt.isRequested {
      var due = time(after: period * Rational(refresh))
      // While a screenshot waits for its frame, later keys wait too, so that the screenshot shows
      // the effect of earlier keys only.
      script: while let keys, next < keys.count, !view.isWaiting {
        if let scripted = keys[next].time {
          let at = time(after: scripted.seconds)
          guard at <= due else { break }
          clock.sleep(until: at)
        }
        switch keys[next].action {
        case .key(let key): guard try press(key, view) else { return }
        case .step(let step):
          guard try view.perform(step) else { break script }
          guard try pressTypedKeys(view) else { return }
        }
        next += 1
      }
      if let keys, next >= keys.count { return try finish(view, after: refresh) }
      guard try pressTypedKeys(view) else { return }
      clock.sleep(until: due)
      // A window stays open at the end, so that the user can step back. Otherwise the last refresh
      // is delayed until playback has ended, so that it counts all frames.
      let isLast = keys == nil && view.window == nil && player.state == .ended
      if isLast { due = max(due, clock.now) }
      try show(view, due)
      if isLast { return }
      if keys == nil { view.waitWhileIdle() }
      // As on a real display, refreshes whose time has passed are skipped.
      let behind = try ((clock.now - due) / period).rounded(.towardNegativeInfinity)
      refresh += 1 + Int64(clamping: max(0, behind))
    }
  }

  /// Performs the action of a key.
  ///
  /// - Returns: False for the key that ends playback.
  private func press(_ key: PlayerKey, _ view: PlaybackView) throws -> Bool {
    add(.key(key), clock.now)
    return try view.press(key)
  }

  /// Performs the actions of the keys that were pressed in the window.
  ///
  /// - Returns: False if the window was closed, or a key or a dropped file ends playback.
  private func pressTypedKeys(_ view: PlaybackView) throws -> Bool {
    guard let window = view.window, !view.isWaiting else { return true }
    guard let names = window.takeKeys() else { return false }
    for key in names.compactMap({ PlayerKey(name: $0) }) {
      guard try press(key, view) else { return false }
    }
    if let path = window.takeDroppedFile(), view.accepts(path) { return false }
    return true
  }

  private func show(_ view: PlaybackView, _ due: MediaTime) throws {
    try view.show(at: due) { add(.screenshot($0), clock.now) }
  }

  /// Continues to refresh until the pending screenshots are taken.
  private func finish(_ view: PlaybackView, after refresh: Int64) throws {
    var refresh = refresh
    while view.isWaiting, !Interrupt.isRequested {
      let due = max(time(after: period * Rational(refresh)), clock.now)
      clock.sleep(until: due)
      try show(view, due)
      refresh += 1
    }
  }

  private func add(_ content: Entry.Content, _ time: MediaTime) {
    log.withLock { $0.append(Entry(content: content, hostTime: time)) }
  }

  /// Returns the host time at a number of seconds after the start of playback, rounded to a
  /// nanosecond.
  private func time(after seconds: Rational) -> MediaTime {
    MediaTime(nanoseconds: nanoseconds(start.seconds + seconds))
  }
}
