// SPDX-License-Identifier: Apache-2.0

/// An onset that is kept as it is while what surrounds it is stretched: 1:1 for a moment around it.
struct OnsetLock: Sendable {
  /// The onset in the source, and where it belongs in the output.
  let source: Double
  let output: Double
  /// From 0, an accent, to 1, a clap.
  let strength: Double
  /// How much of either side plays 1:1, in samples.
  let before: Double
  let after: Double
  /// How much more of either side, in source samples, makes up for it.
  let easeBefore: Double
  let easeAfter: Double

  /// Where what it changes starts and ends in the source.
  var reach: Range<Double> { source - before - easeBefore..<source + after + easeAfter }
}

/// A map of speeds with locks around onsets, as they are found.
///
/// A lock leaves its onset where it belongs. What plays 1:1 around it is made up for on either
/// side within a bounded time, at up to twice the stretch, or half of it where sound is sped up;
/// where onsets are too near each other for that, less of them plays 1:1.
struct TransientTimeMap {
  /// How much there is to lock and to make up, in samples.
  struct Extent: Sendable {
    let before: Double
    let after: Double
    /// The most to make up in, in slow motion and where sound is sped up.
    let ease: Double
    let fastEase: Double
    /// How much of it is for the weakest onsets.
    let least: Double

    /// How many samples after an onset it is found.
    let delay: Double

    /// How far ahead of a position onsets must be known.
    var lookAhead: Double { 2 * before + 2 * after + 3 * max(ease, fastEase) + delay }

    /// Milliseconds before and after an onset, at a sampling rate.
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
  /// The source positions of the piece, in which onsets are locked.
  let bounds: Range<Double>
  private(set) var locks: [OnsetLock] = []
  /// An onset, and how much around it is to play 1:1.
  private struct Place {
    let source: Double
    let before: Double
    let after: Double
    let strength: Double
  }

  /// The onset whose lock waits for the next one, and the one before it.
  private var waiting: Place?
  private var previous: Place?

  init(_ base: SpeedMap, _ extent: Extent, bounds: Range<Double>) {
    self.base = base
    self.extent = extent
    self.bounds = bounds
  }

  /// Takes the next onset; a weak one is locked for less than the extent.
  mutating func append(_ source: Double, strength: Double) {
    guard bounds.contains(source) else { return }
    let part = extent.least + (1 - extent.least) * strength
    let place = Place(
      source: source, before: extent.before * part, after: extent.after * part, strength: strength)
    if let waiting { lock(waiting, next: place) }
    waiting = place
  }

  /// Tells that no further onset will come before a source position.
  mutating func scanned(upTo position: Double) {
    let reach = extent.after + extent.before + 2 * max(extent.ease, extent.fastEase)
    guard let place = waiting, place.source + reach <= position else { return }
    lock(place, next: nil)
    waiting = nil
  }

  /// Forgets locks that end before a source position.
  mutating func forget(before position: Double) {
    locks.removeAll { $0.reach.upperBound < position }
  }

  private mutating func lock(_ place: Place, next: Place?) {
    let onset = place.source
    let speed = base.speed(at: onset)
    let before = side(
      onset - (previous?.source ?? bounds.lowerBound), mine: place.before,
      others: previous?.after ?? 0, speed)
    let after = side(
      (next?.source ?? bounds.upperBound) - onset, mine: place.after,
      others: next?.before ?? 0, speed)
    locks.append(
      OnsetLock(
        source: onset, output: base.output(at: onset), strength: place.strength,
        before: before.locked, after: after.locked, easeBefore: before.ease, easeAfter: after.ease))
    previous = place
  }

  /// How much of a gap plays 1:1 beside one of its ends, and how much is there to make up for it.
  private func side(
    _ gap: Double, mine: Double, others: Double, _ speed: Double
  ) -> (locked: Double, ease: Double) {
    let stretch = 1 / speed
    let longest = speed > 1 ? extent.fastEase : extent.ease
    // So much that the rest is at twice the stretch, or half of it.
    let space = gap * (speed > 1 ? stretch / (2 - stretch) : 0.5)
    var locked = mine * min(1, space / (mine + others))
    if speed > 1 { locked = min(locked, longest * stretch / (2 * (1 - stretch))) }
    let rest = gap - (mine + others) * min(1, space / (mine + others))
    return (locked, min(longest, rest * mine / (mine + others)))
  }

  /// The lock that changes what plays at a source position of the base map.
  private func lock(at source: Double) -> OnsetLock? {
    locks.last { $0.reach.lowerBound <= source }.flatMap { $0.reach.contains(source) ? $0 : nil }
  }

  /// The lock in whose 1:1 part an output sample lies, or not much outside.
  func lock(around output: Double, within margin: Double) -> OnsetLock? {
    locks.filter {
      $0.output - max($0.before, margin) < output && output < $0.output + max($0.after, margin)
    }
    .min { ($0.output - output).magnitude < ($1.output - output).magnitude }
  }

  /// The source position that plays at an output sample.
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

  /// The output sample at which a source position plays.
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
