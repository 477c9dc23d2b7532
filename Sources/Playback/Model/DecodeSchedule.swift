// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore

/// The frames to decode next, and the decoded frames.
///
/// One decode job runs at a time. While it runs, its schedule decides again and again whether the
/// job's frames are still the ones that are needed first.
struct DecodeSchedule: Sendable {
  /// The greatest number of future refreshes for which frames are decoded in advance: about a
  /// second.
  ///
  /// The number is limited, because the list of needed frames computes exact positions for every
  /// refresh.
  private static let maximumRefreshes = 64
  /// The greatest number of frames decoded in advance on each side of a frame that is shown in a
  /// pause.
  private static let maximumNeighbors = 12

  /// The frames that are needed next, without duplicates, the most urgent first.
  private struct NeededFrames: Sendable {
    var keys: [FrameKey] = []
    /// For each frame, the output sample of the refresh that needs it; one value for all frames of
    /// a pause.
    var samples: [Rational] = []
    private var seen: Set<FrameKey> = []

    mutating func add(_ key: FrameKey?, at sample: Rational) {
      guard let key, seen.insert(key).inserted else { return }
      keys.append(key)
      samples.append(sample)
    }
  }

  /// A range of output samples in which nothing needs to be decoded.
  ///
  /// The list of needed frames is expensive to make. It is made again only after a part of it was
  /// shown.
  private struct IdleSpan: Sendable {
    let generation: Int
    /// The output sample of one refresh; the list of needed frames assumed regular refreshes after
    /// it.
    let refresh: Rational
    let start: Rational
    let end: Rational
  }

  /// Whether a job that was made for an earlier generation is still needed; decided once per
  /// generation.
  private struct JobJudgment: Sendable {
    let job: Int
    let generation: Int
    let isNeeded: Bool
  }

  private var ring: FrameRing
  /// Increases whenever different frames become needed, so that a running job is judged again.
  private var generation = 0
  /// The last decision whether a running job is still needed.
  private var judgment: JobJudgment?
  /// The last frame that the running job returned; nil before the first.
  private var jobPosition: Int?
  /// For each needed frame, the output sample of the refresh that shows it, as of the last update
  /// of the list of needed frames.
  private var deadlines: [FrameKey: Rational] = [:]
  /// The range of output samples in which nothing needs to be decoded; nil if unknown.
  private var idle: IdleSpan?
  /// The direction of the last step; more frames are decoded in advance in this direction.
  private(set) var stepsBackward = true
  /// Assets that cannot be read.
  private var failedAssets: Set<Int> = []

  /// - Parameter budget: The limit on the memory for decoded frames, in bytes.
  init(budget: Int) { ring = FrameRing(budget: budget) }

  // MARK: Decoded frames

  /// The memory that the decoded frames use, in bytes.
  var byteCount: Int { ring.byteCount }

  /// Returns a decoded frame, and marks it as most recently used.
  mutating func image(_ key: FrameKey) -> MediaFrame? { ring.image(key) }

  /// Returns a decoded frame, without marking it as used.
  func decoded(_ key: FrameKey) -> MediaFrame? { ring.decoded(key) }

  /// Returns the decoded frame between `first` and `key` that is nearest to `key`.
  func nearest(to key: FrameKey, from first: FrameKey) -> FrameKey? {
    ring.nearest(to: key, from: first)
  }

  /// Returns true if a frame is decoded, or cannot be decoded.
  func needsNoDecoding(_ key: FrameKey) -> Bool {
    ring.needsNoDecoding(key) || failedAssets.contains(key.asset)
  }

  // MARK: Changes

  /// Makes the schedule again, because different frames are needed.
  mutating func change() {
    generation += 1
    ring.resetLimit()
  }

  /// Notes the direction of a step.
  mutating func note(stepsBackward: Bool) { self.stepsBackward = stepsBackward }

  /// Adds a frame that a job decoded.
  ///
  /// - Returns: False if all other frames are needed sooner.
  mutating func insert(
    _ image: MediaFrame, for key: FrameKey, of job: DecodeJob, isReverse: Bool
  ) -> Bool {
    jobPosition = key.frame
    guard job.frames.contains(key.frame) else {
      let keptCount = isReverse ? job.neighborCount : Self.maximumNeighbors
      if key.frame >= job.range.lowerBound - keptCount { ring.keep(image, for: key) }
      return true
    }
    return ring.insert(image, for: key)
  }

  /// Marks frames that cannot be decoded.
  mutating func fail(_ keys: some Sequence<FrameKey>) { ring.fail(keys) }

  /// Marks an asset as unreadable.
  mutating func fail(asset: Int) { failedAssets.insert(asset) }

  // MARK: Jobs

  /// Returns the next frames to decode; nil if all frames that are needed soon are decoded.
  mutating func nextJob(_ outlook: PlaybackOutlook, _ now: MediaTime) -> DecodeJob? {
    guard outlook.state != .closed else { return nil }
    jobPosition = nil
    let start = outlook.playhead.sample(at: outlook.refreshes.next(after: now))
    if isIdle(at: start, outlook) { return nil }
    let ahead = maximumNeeded(outlook)
    let (refresh, needed) = updateNeeded(ahead, outlook, now)
    let keys = needed.keys
    guard let first = keys.firstIndex(where: { !needsNoDecoding($0) }) else {
      // Decodes nothing until a quarter of the list of needed frames was shown or, in a pause,
      // until the generation changes.
      let last = needed.samples.last ?? start
      rest(from: start, to: last > start ? start + (last - start) / 4 : .invalid, refresh)
      return nil
    }
    let missing = keys[first...].filter { !needsNoDecoding($0) }
    let key = keys[first]
    let isStill = outlook.state != .playing
    let run = missing.prefix { $0.asset == key.asset }.map(\.frame)
    // Frames of the same refresh may be listed in either order, so the direction is found by
    // comparing the first frame with a later one.
    let isDescending = run[min(4, run.count - 1)] < run[0]
    var frames: [Int]
    if isDescending {
      // Decoding a frame of a GOP begins at the key frame. So in reverse, a pass waits until it
      // returns many frames, unless they are needed soon.
      let reserve = max(2, ahead / 3)
      guard isStill || first < reserve || missing.count >= reserve else {
        rest(from: start, to: needed.samples[first - reserve], refresh)
        return nil
      }
      frames = Self.descendingRun(run, of: outlook.assets[key.asset])
    } else {
      frames = Self.ascendingRun(run)
    }
    // For a seek, only the sought frame is decoded first.
    if outlook.state == .seeking, first == 0 { frames = [key.frame] }
    // Reverse playback may begin before the seek ends. Reverse playback then needs all frames
    // before the sought frame.
    let neighborCount =
      outlook.state == .seeking ? max(ahead, Self.maximumNeighbors) : Self.maximumNeighbors
    return DecodeJob(
      purpose: isStill && !Self.isFar(key, outlook.assets) ? .scrubbing : .playing,
      asset: key.asset,
      frames: frames.sorted(), neighborCount: isStill ? neighborCount : 0, generation: generation)
  }

  /// Returns true if a job should continue, and false if frames of other jobs are needed sooner.
  ///
  /// After a step, the running job often still returns the frame that is needed first. If each step
  /// stopped the job, holding the key down would decode the same GOP again and again.
  mutating func isNeeded(
    _ job: DecodeJob, _ outlook: PlaybackOutlook, _ now: MediaTime
  ) -> Bool {
    guard job.generation != generation else { return !isLate(job, outlook, now) }
    if let judgment, judgment.job == job.generation, judgment.generation == generation {
      return judgment.isNeeded && !isLate(job, outlook, now)
    }
    let needed = updateNeeded(maximumNeeded(outlook), outlook, now).frames
    let first = needed.keys.first { !needsNoDecoding($0) }
    // A job returns frames in ascending order, so it cannot return a frame before the one that it
    // returned last.
    let isNeeded =
      first.map {
        $0.asset == job.asset && $0.frame > (jobPosition ?? -1) && job.frames.contains($0.frame)
      } ?? false
    judgment = JobJudgment(job: job.generation, generation: generation, isNeeded: isNeeded)
    return isNeeded
  }

  /// Returns true if playback has passed the next frame of a job that has returned at least one
  /// frame.
  ///
  /// A new job then begins with the frame that is due. Each job returns at least one frame, so
  /// something is shown even if decoding is slower than playback. In reverse, the next frame of the
  /// job is needed last. If it was passed, all other frames were passed too.
  private mutating func isLate(
    _ job: DecodeJob, _ outlook: PlaybackOutlook, _ now: MediaTime
  ) -> Bool {
    guard outlook.state == .playing, let jobPosition, jobPosition >= job.range.lowerBound,
      let next = job.frames.first(where: { $0 > jobPosition })
    else { return false }
    let key = FrameKey(asset: job.asset, frame: next)
    let start = outlook.playhead.sample(at: outlook.refreshes.next(after: now))
    if let deadline = deadlines[key], start <= deadline { return false }
    // In a loop, the frame may be needed again.
    updateNeeded(maximumNeeded(outlook), outlook, now)
    return deadlines[key] == nil
  }

  /// The greatest number of frames that are requested at once.
  private func maximumNeeded(_ outlook: PlaybackOutlook) -> Int {
    max(2, ring.capacity(estimated: Self.estimatedFrameBytes(outlook.assets)) * 3 / 4)
  }

  /// Returns true for a frame far from its key frame.
  ///
  /// Several threads then decode it sooner than one thread, although each thread delays the
  /// decoder's output by a frame.
  private static func isFar(_ key: FrameKey, _ assets: [PlayerAsset]) -> Bool {
    guard let table = assets[key.asset].asset.videoTrack?.frames else { return false }
    return key.frame - (table.keyFrame(atOrBefore: key.frame) ?? 0) > 16
  }

  private mutating func rest(from start: Rational, to end: Rational, _ refresh: Rational) {
    idle = IdleSpan(generation: generation, refresh: refresh, start: start, end: end)
  }

  /// Returns true if an output sample is in the idle span, so that nothing needs to be decoded.
  private func isIdle(at sample: Rational, _ outlook: PlaybackOutlook) -> Bool {
    guard let idle, idle.generation == generation, idle.start <= sample, sample < idle.end
    else { return false }
    guard let last = outlook.refreshes.last, idle.end.isValid else { return true }
    // If the refreshes are at other times than the list of needed frames assumed, they show other
    // frames.
    let playhead = outlook.playhead
    let step = outlook.refreshes.step(playhead.sampleRate)
    let count = (playhead.sample(at: last) - idle.refresh) / step
    guard let nearest = try? count.rounded(.halfAwayFromZero) else { return false }
    return (count - Rational(nearest)).magnitude <= Rational(1, over: 64)
  }

  private static func ascendingRun(_ run: [Int]) -> [Int] {
    var frames: [Int] = []
    for frame in run.prefix(16) {
      // A much lower frame index means that the loop begins again. The frame indices of one refresh
      // differ by at most one.
      if let most = frames.max(), frame < most - 1 { break }
      frames.append(frame)
    }
    return frames
  }

  /// Returns the frames of one decoding pass in reverse playback: those in the GOP of the first
  /// frame.
  ///
  /// A part of the GOP before it would have to be decoded again in the next pass, so it is left
  /// out. For intra-only codecs, a pass has eight frames.
  private static func descendingRun(_ run: [Int], of asset: PlayerAsset) -> [Int] {
    guard let table = asset.asset.videoTrack?.frames else { return [run[0]] }
    let key = table.keyFrame(atOrBefore: run[0]) ?? 0
    let next = table.keyFrame(after: run[0]) ?? table.entries.count
    var frames: [Int] = []
    for frame in run {
      if frame < key {
        let isIntra = table.entries[frame...run[0]].allSatisfy(\.isKeyFrame)
        guard isIntra, frames.count < 8 else { break }
      }
      if frame < next { frames.append(frame) }
    }
    return frames
  }

  private static func estimatedFrameBytes(_ assets: [PlayerAsset]) -> Int {
    guard let track = assets.lazy.compactMap(\.asset.videoTrack).first else { return 1 << 20 }
    return max(1, track.width * track.height * 3 / 2)
  }

  /// Updates the list of frames that are needed next.
  ///
  /// The frame ring and running jobs use this list.
  @discardableResult
  private mutating func updateNeeded(
    _ count: Int, _ outlook: PlaybackOutlook, _ now: MediaTime
  ) -> (refresh: Rational, frames: NeededFrames) {
    let (refresh, needed) = neededFrames(count, outlook, now)
    ring.need(needed.keys)
    deadlines = Dictionary(uniqueKeysWithValues: zip(needed.keys, needed.samples))
    return (refresh, needed)
  }

  /// Returns the frames that are needed next, and the output sample of the first refresh
  /// considered.
  private func neededFrames(
    _ count: Int, _ outlook: PlaybackOutlook, _ now: MediaTime
  ) -> (refresh: Rational, frames: NeededFrames) {
    var needed = NeededFrames()
    let (playhead, last) = (outlook.playhead, outlook.lastRun)
    let start = playhead.sample(at: outlook.refreshes.next(after: now))
    let current = playhead.shownRun(at: start)
    let step = outlook.refreshes.step(playhead.sampleRate)
    // Refreshes are assumed at regular intervals from the last one.
    let slack = step / 32
    var sample = min(start, outlook.refreshes.last.map(playhead.sample) ?? start)
    let passed = try? ((start - slack - sample) / step).rounded(.towardPositiveInfinity)
    let isOverdue = start - sample > step * Rational(3, over: 2)
    sample += step * Rational(max(0, passed ?? 0))
    let refresh = sample
    var still = current.rate == .zero && current.id == last.id
    if still {
      sample = start
    } else {
      if isOverdue {
        // A refresh is overdue and may come at any moment, so the current frame is needed too.
        let here = current.position(at: start)
        needed.add(current.timeline.frame(at: here.time, before: here.isBackward), at: start)
      }
      // A refresh may come slightly before or after its expected time, so the frames at those times
      // are needed too.
      for _ in 0..<Self.maximumRefreshes where needed.keys.count < count {
        let run = playhead.shownRun(at: sample)
        let position = run.position(at: sample)
        for place in [
          position, run.position(at: sample - slack), run.position(at: sample + slack),
        ] {
          needed.add(run.timeline.frame(at: place.time, before: place.isBackward), at: sample)
        }
        sample += step
        if position.isAtEnd || run.rate == .zero && run.id == last.id {
          still = true
          break
        }
      }
      // During playback, the frames ahead are enough. If playback is about to stop, the frames
      // around the position where it stops are added.
      if !still { return (refresh, needed) }
    }
    let position = playhead.shown(at: outlook.refreshes.next(after: now)).position
    let timeline = last.timeline
    guard
      let here = timeline.presentation(at: position.time, before: position.isBackward)
    else { return (refresh, needed) }
    needed.add(here.frame, at: sample)
    // When stepping, the neighbors of this frame are needed next, mostly in the direction of the
    // steps.
    let (most, few) = (min(Self.maximumNeighbors, count / 2), min(4, count / 4))
    for (isForward, length) in [(!stepsBackward, most), (stepsBackward, few)] {
      var place = here
      for _ in 0..<length {
        guard let next = timeline.neighbor(of: place, isForward: isForward) else { break }
        needed.add(next.frame, at: sample)
        place = next
      }
    }
    return (refresh, needed)
  }
}
