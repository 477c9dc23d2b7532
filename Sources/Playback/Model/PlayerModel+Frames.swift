// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

extension PlayerModel {
  /// Whether the last refresh showed what was due: a frame or a gap.
  var isCurrent: Bool { presented.map { $0.frame == lastShown?.key } ?? false }

  /// Returns the frame for a refresh, and counts the frames that came due since the last refresh.
  ///
  /// Nil in a gap, and before the first frame is decoded.
  mutating func frame(at time: MediaTime) -> PlayerFrame? {
    advance(to: time)
    let isRepeated = lastRefresh == time
    lastRefresh = time
    let heard = clock.sample(at: time)
    let run = transport.shownRun(at: heard)
    let position = run.position(at: heard)
    let key = run.timeline.frame(at: position.time, before: position.isBackward)
    let passed = dueFrames(run, position, key)
    presented = Presented(
      run: run.id, timeline: run.timeline, position: position, frame: key)
    guard let key else {
      ledger.skip(passed)
      lastShown = nil
      return nil
    }
    let image = ring.image(key)
    ledger.count(passed, isReady: image != nil)
    if let image {
      lastShown = (key, image)
    } else {
      lastShown = substitute(for: key, run, position)
    }
    guard let (shown, image) = lastShown else { return nil }
    let made = isCurrent ? synthesizedImage(at: position, run) : nil
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
    for due: FrameKey, _ run: TransportRun, _ position: TransportRun.Position
  ) -> (key: FrameKey, image: MediaFrame)? {
    // Playback has passed everything from the start of this run, or of the loop, up to this
    // instant.
    var start = run.origin
    if let loop = run.loop, position.loopCount > 0 {
      start = run.isBackward ? loop.end : loop.start
    }
    guard state == .playing,
      let first = run.timeline.firstFrame(
        from: start, to: position.time, isBackward: run.isBackward),
      let passed = ring.nearest(to: due, from: first)
    else { return lastShown }
    if let shown = lastShown?.key, shown.isBetween(passed, and: due) { return lastShown }
    return ring.image(passed).map { (passed, $0) }
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

  /// Adds a frame that a job decoded.
  ///
  /// - Returns: True if the job should continue.
  mutating func insert(
    _ image: MediaFrame, for key: FrameKey, of job: DecodeJob, _ now: MediaTime
  ) -> Bool {
    jobPosition = key.frame
    guard job.frames.contains(key.frame) else {
      let keptCount = rate < .zero ? job.neighborCount : Self.maximumNeighbors
      if key.frame >= job.range.lowerBound - keptCount { ring.keep(image, for: key) }
      return isNeeded(job, now)
    }
    let isAdded = ring.insert(image, for: key)
    finishSeek(now)
    return isAdded && isNeeded(job, now)
  }

  /// Ends a job.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - decoded: The frames that the decoder returned; nil if the job was stopped before its end.
  ///   - now: The host time.
  mutating func finish(_ job: DecodeJob, decoded: Set<Int>?, _ now: MediaTime) {
    guard let decoded else { return }
    let missing = job.frames.filter { !decoded.contains($0) }
    ring.fail(missing.map { FrameKey(asset: job.asset, frame: $0) })
    for index in missing {
      report(.undecodableFrame(path: assets[job.asset].asset.path, index: index), now)
    }
    finishSeek(now)
  }

  /// Marks an asset as unreadable.
  mutating func fail(_ job: DecodeJob, _ error: MediaError, _ now: MediaTime) {
    failedAssets.insert(job.asset)
    report(.fileFailed(error), now)
    finishSeek(now)
  }
}
