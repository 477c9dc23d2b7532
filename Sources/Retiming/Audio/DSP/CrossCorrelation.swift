// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A signal decimated by block sums, for a coarse search of the best cross-correlation.
package struct DecimatedSignal: Sendable {
  /// The number of samples in each sum.
  package let step: Int
  package private(set) var sums: [Float] = []

  package init(step: Int) { self.step = step }

  /// Adds the sums of the blocks that `samples` completes; earlier sums are kept.
  package mutating func extend(to samples: [Float]) {
    var start = sums.count * step
    while start + step <= samples.count {
      var sum: Float = 0
      for index in start..<start + step { sum += samples[index] }
      sums.append(sum)
      start += step
    }
  }

  /// Drops the sums of complete blocks before a sample.
  ///
  /// - Returns: The number of dropped samples.
  mutating func forget(before count: Int) -> Int {
    let spent = min(count / step, sums.count)
    sums.removeFirst(spent)
    return spent * step
  }
}

/// A search for the part of a signal with the highest normalized cross-correlation to a template.
package enum CrossCorrelation {
  /// The parameters of a search; offsets are in samples.
  package struct Search {
    /// The template.
    package let wanted: [Float]
    /// The search covers the start positions `middle - reach` to `middle + reach`.
    package let middle: Int
    package let reach: Int
    /// The amount subtracted from the correlation at distance `reach` from the center.
    ///
    /// It grows with the square of the distance.
    package let penalty: Float

    package init(wanted: [Float], middle: Int, reach: Int, penalty: Float = 0) {
      (self.wanted, self.middle, self.reach, self.penalty) = (wanted, middle, reach, penalty)
    }
  }

  /// Returns the offset from the center with the highest correlation, or zero if the template is
  /// silent.
  ///
  /// The decimated signals are searched over the whole range first. The samples are then searched
  /// around the best coarse offset. The result is the coarse offset if all offsets near it are
  /// excluded.
  ///
  /// - Parameters:
  ///   - search: The template and the range of offsets.
  ///   - samples: The signal.
  ///   - steps: The decimated signal, starting at the same sample and covering the search range.
  ///   - excludes: Returns true to exclude an offset, false to allow it.
  /// - Returns: The offset in samples.
  package static func best(
    _ search: Search, in samples: [Float], _ steps: DecimatedSignal,
    excludes: (Int) -> Bool = { _ in false }
  ) -> Int {
    let coarse = coarsely(search, steps, excludes)
    return withBuffers(samples, search.wanted) { samples, wanted in
      let power = product(wanted, wanted)
      guard power > 1e-9 else { return 0 }
      var best = (offset: coarse, score: -Float.infinity)
      // The fine search has no distance penalty, because a penalty would pull the best match toward
      // the center and so shift the phase of a tone.
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

  /// Returns the best offset on the grid of the decimated signal.
  private static func coarsely(
    _ search: Search, _ steps: DecimatedSignal, _ excludes: (Int) -> Bool
  ) -> Int {
    var wanted = DecimatedSignal(step: steps.step)
    wanted.extend(to: search.wanted)
    return withBuffers(steps.sums, wanted.sums) { all, wanted in
      let power = product(wanted, wanted)
      guard power > 1e-9 else { return 0 }
      let length = wanted.count
      // The first and the last searched position on the decimated grid.
      let first = (search.middle - search.reach + steps.step - 1) / steps.step
      let last = (search.middle + search.reach) / steps.step
      guard first <= last else { return 0 }
      var energy: Float = 0
      for index in first..<first + length { energy += all[index] * all[index] }
      var best = (offset: 0, score: -Float.infinity)
      for start in first...last {
        if start > first {
          let (gone, come) = (all[start - 1], all[start + length - 1])
          energy = max(0, energy + come * come - gone * gone)
        }
        let offset = start * steps.step - search.middle
        guard !excludes(offset) else { continue }
        let other = all.extracting(start..<start + length)
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

  /// Returns the subsample offset at which a signal best matches a template, at most six samples.
  ///
  /// Returns zero for a low correlation. Tones need this precision. At a sampling rate of 48 kHz,
  /// an error of half a sample shifts the phase of an 8 kHz tone by half a radian, and the shift
  /// would repeat at each grain boundary.
  package static func remainder(
    of wanted: [Float], around start: Int, in samples: [Float]
  ) -> Double {
    let power = Double(withBuffers(wanted, wanted) { product($0, $1) })
    guard power > 1e-9 else { return 0 }
    var distance = 0.0
    var first = 0.0
    for step in 0..<6 {
      let whole = distance.rounded(.down)
      let other = FractionalDelay(distance - whole)
        .samples(of: samples, from: start + Int(whole) - 1, count: wanted.count + 2)
      let fit = SubsampleDelayEstimator(wanted, other)
      let correlation = fit.wantedOther / (power * max(fit.other, 1e-12)).squareRoot()
      if step == 0 {
        // Below this correlation the estimate is unreliable. The limit still admits high tones: at
        // a sampling rate of 44.1 kHz, a 16 kHz tone that is half a sample off has a correlation of
        // 0.42.
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

  /// Returns the dot product, computed with eight lanes.
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
