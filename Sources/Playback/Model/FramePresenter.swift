// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// The frames that a player shows at the refreshes of the screen, and their account.
struct FramePresenter: Sendable {
  /// The frame that was due at the last refresh, and the playback position at that refresh.
  private struct Presented: Sendable {
    let run: Int
    let timeline: PlaybackTimeline
    let position: TransportRun.Position
    let frame: FrameKey?
  }

  private(set) var refreshes: ScreenRefreshes
  private(set) var ledger = PlaybackLedger()
  private var presented: Presented?
  /// The last image that a refresh showed.
  private(set) var lastShown: (key: FrameKey, image: MediaFrame)?

  /// - Parameter period: The seconds between two refreshes.
  init(period: Rational) { refreshes = ScreenRefreshes(period: period) }

  /// Whether the last refresh showed what was due: a frame or a gap.
  var isCurrent: Bool { presented.map { $0.frame == lastShown?.key } ?? false }

  /// Returns the frame for a refresh, and counts the frames that came due since the last refresh.
  ///
  /// Nil in a gap, and before the first frame is decoded.
  mutating func frame(
    at time: MediaTime, _ playhead: Playhead, _ state: PlayerState, _ assets: [PlayerAsset],
    _ schedule: inout DecodeSchedule, _ synthesis: PlayerSynthesis
  ) -> PlayerFrame? {
    let isRepeated = refreshes.last == time
    refreshes.note(time)
    let (run, position) = playhead.shown(at: time)
    let key = run.timeline.frame(at: position.time, before: position.isBackward)
    let passed = dueFrames(run, position, key)
    presented = Presented(
      run: run.id, timeline: run.timeline, position: position, frame: key)
    guard let key else {
      ledger.skip(passed)
      lastShown = nil
      return nil
    }
    let image = schedule.image(key)
    ledger.count(passed, isReady: image != nil)
    if let image {
      lastShown = (key, image)
    } else {
      lastShown = substitute(for: key, run, position, isPlaying: state == .playing, &schedule)
    }
    guard let (shown, image) = lastShown else { return nil }
    let outlook = PlaybackOutlook(
      playhead: playhead, refreshes: refreshes, state: state, assets: assets)
    let made = isCurrent ? synthesis.image(at: position, run, outlook) : nil
    if made != nil, !isRepeated { ledger.synthesized += 1 }
    let asset = assets[shown.asset].asset
    return PlayerFrame(
      path: asset.path, index: shown.frame, time: position.time, isCurrent: isCurrent,
      isSynthesized: made != nil, rotation: asset.videoTrack?.rotation ?? 0,
      image: made ?? image, captured: image)
  }

  /// Returns the image to show while the due frame is not decoded.
  ///
  /// This is the last decoded frame that playback has passed in the same segment or, if there is
  /// none, the frame on screen.
  private mutating func substitute(
    for due: FrameKey, _ run: TransportRun, _ position: TransportRun.Position, isPlaying: Bool,
    _ schedule: inout DecodeSchedule
  ) -> (key: FrameKey, image: MediaFrame)? {
    // Playback has passed everything from the start of this run, or of the loop, up to this
    // instant.
    var start = run.origin
    if let loop = run.loop, position.loopCount > 0 {
      start = run.isBackward ? loop.end : loop.start
    }
    guard isPlaying,
      let first = run.timeline.firstFrame(
        from: start, to: position.time, isBackward: run.isBackward),
      let passed = schedule.nearest(to: due, from: first)
    else { return lastShown }
    if let shown = lastShown?.key, shown.isBetween(passed, and: due) { return lastShown }
    return schedule.image(passed).map { (passed, $0) }
  }

  /// Returns the number of frames that came due since the last refresh.
  private func dueFrames(
    _ run: TransportRun, _ position: TransportRun.Position, _ key: FrameKey?
  ) -> Int {
    guard let presented else { return key == nil ? 0 : 1 }
    let timeline = run.timeline
    // After a jump, only the frame at the new position is due.
    let jumped =
      presented.run != run.id && (run.isJump || presented.timeline !== timeline)
    if jumped || presented.run != run.id && presented.frame == key {
      return presented.frame == key || key == nil ? 0 : 1
    }
    let last = presented.position
    let wraps = position.loopCount - (presented.run == run.id ? last.loopCount : 0)
    // A new run starts at the last position, but the run before it may have moved in the other
    // direction. So the direction follows from the two positions, also for the pause at the end.
    let isBackward =
      presented.run == run.id || wraps > 0 ? run.isBackward : position.time < last.time
    func count(_ start: Rational, _ end: Rational) -> Int {
      timeline.frameCount(from: start, to: end, isBackward: isBackward)
    }
    guard let loop = run.loop, wraps > 0 else {
      let passed = count(last.time, position.time)
      // A change of direction may show another frame without any time passing.
      return passed == 0 && presented.frame != key && key != nil ? 1 : passed
    }
    let (first, end) = isBackward ? (loop.end, loop.start) : (loop.start, loop.end)
    // Each repetition of the loop makes its first frame due again, so it counts once more.
    let whole = count(first, end) + 1
    let tail = count(last.time, end)
    let excess = lastFrameCount(timeline, end, isBackward)
    return tail - excess + (wraps - 1) * (whole - excess) + 1 + count(first, position.time)
  }

  /// Returns 1 if a frame begins exactly at the end of a loop, and 0 otherwise.
  ///
  /// The loop does not show such a frame.
  private func lastFrameCount(
    _ timeline: PlaybackTimeline, _ end: Rational, _ isBackward: Bool
  ) -> Int {
    let isTrackEnd = end <= .zero || end >= timeline.video.last?.end ?? .zero
    let next = timeline.frame(at: end, before: isBackward)
    return isTrackEnd || next == nil || next == timeline.frame(at: end, before: !isBackward) ? 0 : 1
  }
}
