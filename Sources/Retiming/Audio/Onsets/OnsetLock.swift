// SPDX-License-Identifier: Apache-2.0

/// An onset with a section around it that plays at 1:1, so that its attack is not stretched.
struct OnsetLock: Sendable {
  /// The position of the onset in samples: in the source (`source`) and in the output (`output`).
  let source: Double
  let output: Double
  /// The strength of the onset, from 0 (an accent) to 1 (a clap).
  let strength: Double
  /// The numbers of samples before (`before`) and after (`after`) the onset that play at 1:1.
  let before: Double
  let after: Double
  /// The numbers of source samples before (`easeBefore`) and after (`easeAfter`) the 1:1 section
  /// that play at a changed speed, so that the section causes no lasting timing error.
  let easeBefore: Double
  let easeAfter: Double

  /// The source range whose playback this onset lock changes.
  var reach: Range<Double> { source - before - easeBefore..<source + after + easeAfter }
}

/// A speed map with 1:1 sections around onsets.
///
/// The onset itself keeps its exact time. Audio in the 1:1 section around it is displaced, so the
/// audio on each side is stretched more (or less, at speeds above 1) until the displacement is made
/// up. This compensation stretches by at most twice the stretch of the map, or by at least half of
/// it at speeds above 1. If onsets are too close together for that, their 1:1 sections are
/// shortened.
struct TransientTimeMap {
  /// The extent of a 1:1 section and of the compensation on each side, in samples.
  struct Extent: Sendable {
    let before: Double
    let after: Double
    /// The greatest length of the compensation on each side, in source samples: `ease` at speeds of
    /// at most 1, `fastEase` above 1.
    let ease: Double
    let fastEase: Double
    /// The fraction of `before` and `after` that the weakest onset gets; the strongest gets all.
    let least: Double

    /// The delay of the onset detector in samples.
    let delay: Double

    /// How far beyond a position the source must be analyzed before the map at that position is
    /// final, in samples.
    var lookAhead: Double { 2 * before + 2 * after + 3 * max(ease, fastEase) + delay }

    /// Creates an extent from milliseconds before and after an onset.
    init(before: Double, after: Double, least: Double = 1, sampleRate: Int) {
      self.least = least
      let millisecond = Double(sampleRate) / 1000
      self.before = before * millisecond
      self.after = after * millisecond
      ease = max(100, before + after) * millisecond
      fastEase = 250 * millisecond
      delay = Double(OnsetDetector.delay(sampleRate: sampleRate))
    }
  }

  let base: SpeedMap
  let extent: Extent
  /// The source range of the audio piece in samples; onsets outside it are ignored.
  let bounds: Range<Double>
  private(set) var locks: [OnsetLock] = []
  /// An onset and the wanted extent of its 1:1 section.
  private struct Transient {
    let source: Double
    let before: Double
    let after: Double
    let strength: Double
  }

  /// The last onset (`waiting`) and the one before it (`previous`).
  ///
  /// The 1:1 section of `waiting` is settled when the next onset is known, because the section
  /// becomes shorter if the two onsets are close together.
  private var waiting: Transient?
  private var previous: Transient?

  init(_ base: SpeedMap, _ extent: Extent, bounds: Range<Double>) {
    (self.base, self.extent, self.bounds) = (base, extent, bounds)
  }

  /// Adds the next onset; the weaker it is, the shorter its 1:1 section.
  mutating func append(_ source: Double, strength: Double) {
    guard bounds.contains(source) else { return }
    let part = extent.least + (1 - extent.least) * strength
    let transient = Transient(
      source: source, before: extent.before * part, after: extent.after * part, strength: strength)
    if let waiting { lock(waiting, next: transient) }
    waiting = transient
  }

  /// Reports that all onsets before a source position were added.
  ///
  /// The last onset then has no unknown successor, so the section around it that plays 1:1 is
  /// settled.
  mutating func scanned(upTo position: Double) {
    let reach = extent.after + extent.before + 2 * max(extent.ease, extent.fastEase)
    guard let transient = waiting, transient.source + reach <= position else { return }
    lock(transient, next: nil)
    waiting = nil
  }

  /// Drops the onset locks that end before a source position.
  mutating func forget(before position: Double) {
    locks.removeAll { $0.reach.upperBound < position }
  }

  private mutating func lock(_ transient: Transient, next: Transient?) {
    let onset = transient.source
    let speed = base.speed(at: onset)
    let before = side(
      onset - (previous?.source ?? bounds.lowerBound), mine: transient.before,
      others: previous?.after ?? 0, speed)
    let after = side(
      (next?.source ?? bounds.upperBound) - onset, mine: transient.after,
      others: next?.before ?? 0, speed)
    locks.append(
      OnsetLock(
        source: onset, output: base.output(at: onset), strength: transient.strength,
        before: before.locked, after: after.locked, easeBefore: before.ease, easeAfter: after.ease))
    previous = transient
  }

  /// Divides the gap between two onsets, and returns the part of one onset: the lengths of its 1:1
  /// section and of its compensation.
  private func side(
    _ gap: Double, mine: Double, others: Double, _ speed: Double
  ) -> (locked: Double, ease: Double) {
    let stretch = 1 / speed
    let longest = speed > 1 ? extent.fastEase : extent.ease
    // The 1:1 sections of both onsets may take only `space` samples of the gap. The remaining
    // samples must suffice to make up for the displacement at no more than twice the stretch of the
    // map, or at no less than half of this stretch for speeds above 1.
    let space = gap * (speed > 1 ? stretch / (2 - stretch) : 0.5)
    var locked = mine * min(1, space / (mine + others))
    if speed > 1 { locked = min(locked, longest * stretch / (2 * (1 - stretch))) }
    let rest = gap - (mine + others) * min(1, space / (mine + others))
    return (locked, min(longest, rest * mine / (mine + others)))
  }

  /// Returns the onset lock whose 1:1 section or compensation contains a source position.
  private func lock(at source: Double) -> OnsetLock? {
    locks.last { $0.reach.lowerBound <= source }.flatMap { $0.reach.contains(source) ? $0 : nil }
  }

  /// Returns the closest onset lock whose 1:1 section contains an output sample, or whose onset is
  /// less than `margin` samples from that sample.
  func lock(around output: Double, within margin: Double) -> OnsetLock? {
    locks.filter {
      $0.output - max($0.before, margin) < output && output < $0.output + max($0.after, margin)
    }
    .min { ($0.output - output).magnitude < ($1.output - output).magnitude }
  }

  /// Returns the source position of an output sample.
  func source(at output: Double) -> Double {
    let plain = base.source(at: output)
    guard let lock = lock(at: plain) else { return plain }
    let (start, end) = (lock.output - lock.before, lock.output + lock.after)
    if output < start {
      let edge = base.output(at: lock.reach.lowerBound)
      return lock.source - lock.before
        - lock.easeBefore * (start - output) / max(start - edge, 1e-9)
    }
    if output > end {
      let edge = base.output(at: lock.reach.upperBound)
      return lock.source + lock.after + lock.easeAfter * (output - end) / max(edge - end, 1e-9)
    }
    return lock.source + output - lock.output
  }

  /// Returns the output sample of a source position.
  func output(at source: Double) -> Double {
    guard let lock = lock(at: source) else { return base.output(at: source) }
    let (start, end) = (lock.source - lock.before, lock.source + lock.after)
    if source < start {
      let edge = base.output(at: lock.reach.lowerBound)
      let locked = lock.output - lock.before
      return locked - (locked - edge) * (start - source) / max(lock.easeBefore, 1e-9)
    }
    if source > end {
      let edge = base.output(at: lock.reach.upperBound)
      let locked = lock.output + lock.after
      return locked + (edge - locked) * (source - end) / max(lock.easeAfter, 1e-9)
    }
    return lock.output + source - lock.source
  }
}
