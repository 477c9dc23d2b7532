// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A sound in sums of some samples each, by which likeness is sought quickly.
struct DecimatedSignal: Sendable {
  /// How many samples make a sum.
  let step: Int
  private(set) var sums: [Float] = []

  init(step: Int) { self.step = step }

  /// Takes as many whole steps as there are beyond those that were taken.
  mutating func extend(to samples: [Float]) {
    var place = sums.count * step
    while place + step <= samples.count {
      var sum: Float = 0
      for index in place..<place + step { sum += samples[index] }
      sums.append(sum)
      place += step
    }
  }

  /// Drops the samples before one, as far as they make whole steps.
  ///
  /// - Returns: How many.
  mutating func forget(before count: Int) -> Int {
    let spent = min(count / step, sums.count)
    sums.removeFirst(spent)
    return spent * step
  }
}

/// Finds which of many stretches of a sound is most like another one of its stretches.
enum CrossCorrelation {
  /// What is compared, in samples: places at which as many start as are wanted.
  struct Search {
    /// The stretch to be like.
    let wanted: [Float]
    /// The middle of those that may be like it, and how far either side they go.
    let middle: Int
    let reach: Int
    /// What the outermost places must be better by, of likenesses of at most 1.
    let penalty: Float
  }

  /// The offset from the middle at which the sound is most like what is wanted; zero in silence.
  ///
  /// At first all places on the grid of the sums are tried, by the sums alone; then all around the
  /// best of them. Excluded offsets are taken only where there are no others, and then zero.
  ///
  /// - Parameters:
  ///   - search: What is sought, and where.
  ///   - samples: The sound.
  ///   - steps: The same in sums, from its first sample on, as far as the search goes.
  ///   - excludes: Which offsets are not to be taken.
  /// - Returns: The offset, in samples.
  static func best(
    _ search: Search, in samples: [Float], _ steps: DecimatedSignal,
    excludes: (Int) -> Bool = { _ in false }
  ) -> Int {
    let coarse = coarsely(search, steps, excludes)
    return withBuffers(samples, search.wanted) { samples, wanted in
      let power = product(wanted, wanted)
      guard power > 1e-9 else { return 0 }
      var best = (offset: coarse, score: -Float.infinity)
      // Near the best it is likeness alone that counts: a tone would go off its phase.
      for distance in 0..<max(2, steps.step) {
        for offset in Set([coarse + distance, coarse - distance]).sorted()
        where offset.magnitude <= search.reach && !excludes(offset) {
          let start = search.middle + offset
          let other = samples.extracting(start..<start + wanted.count)
          let score =
            product(wanted, other) / (power * max(product(other, other), 1e-12)).squareRoot()
          if score > best.score { best = (offset, score) }
        }
      }
      return best.offset
    }
  }

  /// The offset of the best place on the grid of the sums.
  private static func coarsely(
    _ search: Search, _ steps: DecimatedSignal, _ excludes: (Int) -> Bool
  ) -> Int {
    var wanted = DecimatedSignal(step: steps.step)
    wanted.extend(to: search.wanted)
    return withBuffers(steps.sums, wanted.sums) { all, wanted in
      let power = product(wanted, wanted)
      guard power > 1e-9 else { return 0 }
      let length = wanted.count
      // The first and the last place on the grid.
      let first = (search.middle - search.reach + steps.step - 1) / steps.step
      let last = (search.middle + search.reach) / steps.step
      guard first <= last else { return 0 }
      var energy: Float = 0
      for index in first..<first + length { energy += all[index] * all[index] }
      var best = (offset: 0, score: -Float.infinity)
      for place in first...last {
        if place > first {
          let (gone, come) = (all[place - 1], all[place + length - 1])
          energy = max(0, energy + come * come - gone * gone)
        }
        let offset = place * steps.step - search.middle
        guard !excludes(offset) else { continue }
        let other = all.extracting(place..<place + length)
        let correlation = product(wanted, other) / (power * max(energy, 1e-12)).squareRoot()
        let distance = Float(offset) / Float(max(1, search.reach))
        let score = correlation - search.penalty * distance * distance
        if score > best.score { best = (offset, score) }
      }
      return best.offset
    }
  }

  private static func withBuffers<Result>(
    _ first: [Float], _ second: [Float],
    _ body: (UnsafeBufferPointer<Float>, UnsafeBufferPointer<Float>) -> Result
  ) -> Result {
    first.withUnsafeBufferPointer { first in
      second.withUnsafeBufferPointer { body(first, $0) }
    }
  }

  /// How far from a sample, some few at most, the place is at which the sound is most like what
  /// is wanted; zero where it is not much alike anywhere.
  ///
  /// Tones need it: half a sample is half a radian at 8 kHz, as often as there is a grain.
  static func remainder(
    of wanted: [Float], around place: Int, in samples: [Float]
  ) -> Double {
    let power = Double(withBuffers(wanted, wanted) { product($0, $1) })
    guard power > 1e-9 else { return 0 }
    var distance = 0.0
    var first = 0.0
    for step in 0..<6 {
      let whole = distance.rounded(.down)
      let other = FractionalDelay(distance - whole)
        .samples(of: samples, from: place + Int(whole) - 1, count: wanted.count + 2)
      let fit = SubsampleDelayEstimator(wanted, other)
      let correlation = fit.wantedOther / (power * max(fit.other, 1e-12)).squareRoot()
      if step == 0 {
        // At half a sample, 16 kHz is no more alike than this.
        guard correlation > 0.35 else { return 0 }
        first = correlation
      } else if correlation < first - 1e-6 {
        return 0
      }
      guard let move = fit.distance, move.magnitude > 1e-5, (distance + move).magnitude <= 6
      else { break }
      distance += move
    }
    return distance
  }

  /// The sum of products, eight at a time.
  static func product(
    _ first: UnsafeBufferPointer<Float>, _ second: UnsafeBufferPointer<Float>
  ) -> Float {
    let count = min(first.count, second.count)
    let whole = count & ~7
    var sum = SIMD8<Float>.zero
    let (left, right) = (UnsafeRawBufferPointer(first), UnsafeRawBufferPointer(second))
    for index in stride(from: 0, to: whole * 4, by: 32) {
      sum +=
        left.loadUnaligned(fromByteOffset: index, as: SIMD8<Float>.self)
        * right.loadUnaligned(fromByteOffset: index, as: SIMD8<Float>.self)
    }
    var rest: Float = 0
    for index in whole..<count { rest += first[index] * second[index] }
    return sum.sum() + rest
  }
}
