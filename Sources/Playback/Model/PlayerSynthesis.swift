// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankLibAV
import OvercrankMediaCore
import OvercrankRetiming

/// The frames that a player has synthesized.
struct PlayerSynthesis: Sendable {
  /// A frame that was synthesized.
  private struct Made: Sendable {
    let instant: Instant
    let image: MediaFrame
  }

  /// An instant between two captured frames of an asset.
  struct Instant: Sendable {
    /// The captured frames around the instant, without repetitions, in presentation order.
    let older: FrameKey
    let newer: FrameKey
    /// The position between the two frames, from 0 to 1.
    let share: Double
    /// The time between two refreshes as a fraction of the time between the two frames; below 1.
    let step: Double

    /// Returns true if two instants differ by at most 1/16 of a refresh.
    func isAlike(_ other: Instant) -> Bool {
      older == other.older && newer == other.newer && abs(share - other.share) <= step / 16
    }
  }

  private let sampling: FrameSampling
  /// The time in seconds that the last synthesis took.
  private var cost = Rational.zero
  private var made: [Made] = []
  /// The frames from which no motion can be followed to the next frame.
  private var held: Set<FrameKey> = []
  /// The frames that repeat the frame before them.
  private var repetitions: Set<FrameKey> = []

  /// The number of future refreshes for which frames are synthesized in advance.
  private static let maximumRefreshes = 3
  /// The greatest number of frames that are remembered as held; also that of remembered
  /// repetitions.
  private static let maximumMarked = 4_096

  init(_ sampling: FrameSampling) { self.sampling = sampling }

  /// Whether slow playback shows synthesized frames.
  var isOn: Bool { sampling.synthesizesFrames }

  private func image(at instant: Instant) -> MediaFrame? {
    made.first { $0.instant.isAlike(instant) }?.image
  }

  /// Returns the nearest frame that is not a repetition: the given frame or an earlier one.
  private func genuine(atOrBefore key: FrameKey) -> FrameKey {
    var key = key
    while key.frame > 0, repetitions.contains(key) { key = key.previous }
    return key
  }

  /// Returns the frames before and after the instants at which `key` is shown, without repetitions;
  /// nil if the image stands still at these instants.
  private func genuineFrames(around key: FrameKey) -> (older: FrameKey, newer: FrameKey)? {
    let older = genuine(atOrBefore: key)
    var newer = key.next
    while repetitions.contains(newer) { newer = newer.next }
    let distance = newer.frame - older.frame
    return distance <= RepeatedFrameDetector.longestRepetition + 1 ? (older, newer) : nil
  }

  /// Adds a synthesized frame, or records why none could be made.
  mutating func add(_ result: SynthesisResult, at instant: Instant, cost: Rational) {
    self.cost = cost
    switch result {
    case .image(let image):
      // Keeps one frame more than the refreshes ahead, for the refresh on screen.
      if made.count > Self.maximumRefreshes { made.removeFirst() }
      made.append(Made(instant: instant, image: image))
    case .held: Self.mark(instant.older, in: &held)
    case .repetition(let key): Self.mark(key, in: &repetitions)
    }
  }

  private static func mark(_ key: FrameKey, in keys: inout Set<FrameKey>) {
    if keys.count >= maximumMarked { keys = [] }
    keys.insert(key)
  }

  /// Returns the instant at a position if a frame should be synthesized for it, and nil otherwise.
  ///
  /// A frame should be synthesized where the captured frames are farther apart than the refreshes.
  private func instant(
    of position: TransportRun.Position, _ run: TransportRun, _ outlook: PlaybackOutlook
  ) -> Instant? {
    let (time, before) = (position.time, position.isBackward)
    let segment = PlaybackTimeline.segment(of: run.timeline.video, at: time, before: before)
    guard sampling.synthesizesFrames, outlook.state == .playing,
      let mapping = segment?.content?.mapping, mapping.motion != .hold,
      let shown = run.timeline.frame(at: time, before: before),
      let (older, newer) = genuineFrames(around: shown),
      !held.contains(older), let table = outlook.assets[older.asset].asset.videoTrack?.frames,
      newer.frame < table.entries.count,
      let start = try? table.time(ofFrame: Int64(older.frame)).seconds,
      let end = try? table.time(ofFrame: Int64(newer.frame)).seconds,
      let speed = try? mapping.speed(at: time)
    else { return nil }
    let length = (end - start).doubleValue
    let share = (mapping.nearSourceSeconds(of: time) - start).doubleValue / length
    let step = (speed * run.rate * outlook.refreshes.period).magnitude.doubleValue / length
    let tolerance = Double(FrameSequenceInterpolator.tolerance)
    guard step > 0, step < 1 - tolerance, share > tolerance, share < 1 - tolerance else {
      return nil
    }
    return Instant(older: older, newer: newer, share: share, step: step)
  }

  /// Returns the synthesized frame at a position; nil if it is not ready or not needed.
  func image(
    at position: TransportRun.Position, _ run: TransportRun, _ outlook: PlaybackOutlook
  ) -> MediaFrame? {
    instant(of: position, run, outlook).flatMap(image)
  }

  /// Returns the next frame to synthesize.
  ///
  /// Nil if the frames for the next refreshes are ready, or if the captured frames that they need
  /// are not decoded.
  ///
  /// Refreshes too soon for the frame to be ready are skipped.
  func next(
    _ outlook: PlaybackOutlook, _ schedule: DecodeSchedule, _ now: MediaTime
  ) -> (instant: Instant, job: SynthesisJob)? {
    let (playhead, refreshes) = (outlook.playhead, outlook.refreshes)
    guard sampling.synthesizesFrames, outlook.state == .playing, let lastRefresh = refreshes.last
    else { return nil }
    let step = refreshes.step(playhead.sampleRate)
    let last = playhead.sample(at: lastRefresh)
    // The output samples that play while a frame is synthesized.
    let duration = cost * Rational(Int64(playhead.sampleRate))
    let soonest = playhead.sample(at: max(now, lastRefresh)) + duration
    let passed = (try? ((soonest - last) / step).rounded(.towardNegativeInfinity)) ?? 0
    for ahead in 1...Self.maximumRefreshes {
      let sample = last + step * Rational(passed + Int128(ahead))
      let run = playhead.shownRun(at: sample)
      guard let instant = instant(of: run.position(at: sample), run, outlook),
        image(at: instant) == nil, let older = Self.decodedFrame(instant.older, schedule),
        let newer = Self.decodedFrame(instant.newer, schedule)
      else { continue }
      let job = SynthesisJob(
        previous: previousFrames(instant.older, schedule), older: older, newer: newer,
        share: instant.share,
        isFast: sampling == .flowFast)
      return (instant, job)
    }
    return nil
  }

  private static func decodedFrame(
    _ key: FrameKey, _ schedule: DecodeSchedule
  ) -> SynthesisJob.Frame? {
    schedule.decoded(key).map { SynthesisJob.Frame(key: key, image: $0) }
  }

  /// Returns up to two decoded frames before another frame, without repetitions.
  private func previousFrames(
    _ key: FrameKey, _ schedule: DecodeSchedule
  ) -> [SynthesisJob.Frame] {
    var frames: [SynthesisJob.Frame] = []
    var key = key
    while frames.count < 2, key.frame > 0 {
      key = genuine(atOrBefore: key.previous)
      guard let frame = Self.decodedFrame(key, schedule) else { break }
      frames.insert(frame, at: 0)
    }
    return frames
  }
}
