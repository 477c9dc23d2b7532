// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore

extension PlayerModel {
  /// The most refreshes for which frames are decoded in advance: about a second.
  ///
  /// Each refresh costs two exact positions each time that a job is chosen.
  private static let mostRefreshes = 64

  /// Returns the next frames to decode; nil if all frames that are needed soon are decoded.
  mutating func nextJob(_ now: MediaTime) -> DecodeJob? {
    guard state != .closed else { return nil }
    let ahead = max(2, ring.capacity(estimated: estimatedFrameBytes) * 3 / 4)
    let keys = neededFrames(ahead, now)
    ring.need(keys)
    guard let first = keys.firstIndex(where: { !isSettled($0) }) else { return nil }
    let missing = keys[first...].filter { !isSettled($0) }
    let key = keys[first]
    let isStill = state != .playing
    let run = missing.prefix { $0.asset == key.asset }.map(\.frame)
    let isDescending = run.count > 1 && run[1] < run[0]
    var frames: [Int]
    if isDescending {
      // A group of frames is decoded from its key frame. So a pass waits until it gives many frames,
      // unless they are needed soon.
      guard isStill || first < max(2, ahead / 3) || missing.count >= max(2, ahead / 3) else {
        return nil
      }
      frames = descendingRun(run, asset: key.asset)
    } else {
      frames = ascendingRun(run)
    }
    // The frame of a seek is decoded before others, and stops at it.
    if state == .seeking, first == 0 { frames = frames.filter { $0 <= key.frame } }
    return DecodeJob(
      purpose: isStill ? .scrubbing : .playing, asset: key.asset, frames: frames.sorted(),
      generation: generation)
  }

  private func ascendingRun(_ run: [Int]) -> [Int] {
    var frames: [Int] = []
    for frame in run.prefix(16) {
      if let last = frames.last, frame <= last { break }
      frames.append(frame)
    }
    return frames
  }

  /// Returns the frames of one pass for reverse playback: those of the first frame's group, and at
  /// least eight.
  private func descendingRun(_ run: [Int], asset: Int) -> [Int] {
    let key = assets[asset].asset.videoTrack?.frames.keyFrame(atOrBefore: run[0]) ?? 0
    var frames: [Int] = []
    for frame in run {
      if let last = frames.last, frame >= last { break }
      if frame < key, frames.count >= 8 { break }
      frames.append(frame)
    }
    return frames
  }

  private var estimatedFrameBytes: Int {
    guard let track = assets.lazy.compactMap(\.asset.videoTrack).first else { return 1 << 20 }
    return max(1, track.width * track.height * 3 / 2)
  }

  /// Returns the frames that are needed next, in the order of need, each once.
  private func neededFrames(_ count: Int, _ now: MediaTime) -> [FrameKey] {
    var keys: [FrameKey] = []
    var seen: Set<FrameKey> = []
    func add(_ key: FrameKey?) {
      if let key, seen.insert(key).inserted { keys.append(key) }
    }
    let start = clock.sample(at: max(now, lastRefresh ?? now))
    let current = transport.shownRun(at: start)
    let step = refreshPeriod * Rational(Int64(sampleRate))
    // The grid of refreshes continues from the last one.
    let slack = step / 32
    var sample = min(start, lastRefresh.map { clock.sample(at: $0) } ?? start)
    let passed = try? ((start - slack - sample) / step).rounded(.towardPositiveInfinity)
    sample += step * Rational(max(0, passed ?? 0))
    var still = current.rate == .zero && current.id == transport.last.id
    if !still {
      let here = current.position(at: start)
      add(current.timeline.frame(at: here.time, before: here.isBackward))
      // A refresh may come a little sooner or later than the grid says. Where this could show
      // another frame, both are needed.
      for _ in 0..<Self.mostRefreshes where keys.count < count {
        let run = transport.shownRun(at: sample)
        let position = run.position(at: sample + slack)
        let sooner = run.position(at: sample - slack)
        add(run.timeline.frame(at: sooner.time, before: sooner.isBackward))
        add(run.timeline.frame(at: position.time, before: position.isBackward))
        sample += step
        if position.isAtEnd || run.rate == .zero && run.id == transport.last.id {
          still = true
          break
        }
      }
      // The frames of a small loop all fit, and a slow rate needs few: the frames behind follow.
      if !still { return keys }
    }
    let position = position(at: max(now, lastRefresh ?? now))
    let timeline = transport.last.timeline
    guard
      let here = timeline.presentation(at: position.time, before: position.isBackward)
    else { return keys }
    add(here.frame)
    // A frame that is stepped to needs its neighbors next, most of them in the direction of steps.
    let (most, few) = (min(12, count / 2), min(4, count / 4))
    for (isForward, length) in [(!stepsBackward, most), (stepsBackward, few)] {
      var last = here
      for _ in 0..<length {
        guard let next = timeline.neighbor(of: last, isForward: isForward) else { break }
        add(next.frame)
        last = next
      }
    }
    return keys
  }
}
