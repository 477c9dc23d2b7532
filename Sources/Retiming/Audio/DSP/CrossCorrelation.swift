// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A signal decimated by block sums, for a coarse search of the best cross-correlation.
package struct DecimatedSignal: Sendable {
  /// The number of samples in each block sum.
  package let step: Int
  package private(set) var sums: [Float] = []

  package init(step: Int) { self.step = step }

  /// Extends the block sums to all complete blocks of `samples`; existing sums are kept.
  package mutating func extend(to samples: [Float]) {
    let (first, count) = (sums.count, samples.count / step)
    guard first < count else { return }
    samples.withUnsafeBufferPointer { samples in
      var index = first * step
      sums += [Float](unsafeUninitializedCapacity: count - first) { made, filled in
        for block in 0..<count - first {
          let end = index + step
          var sum: Float = 0
          while index < end {
            sum += samples[index]
            index &+= 1
          }
          made.initializeElement(at: block, to: sum)
        }
        filled = count - first
      }
    }
  }

  /// Drops the sums of the complete blocks among the first `count` samples.
  ///
  /// - Returns: The number of samples in the dropped blocks.
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

  /// Returns the offset from the center with the highest correlation; zero if the template is
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
    // The fine search has no distance penalty, because a penalty would pull the best match toward
    // the center and so shift the phase of a tone.
    let span = max(2, steps.step) - 1
    let low = max(-search.reach, coarse - span)
    let high = min(search.reach, coarse + span)
    guard low <= high else { return coarse }
    return withBuffers(samples, search.wanted) { samples, wanted in
      let power = product(wanted, wanted)
      guard power > 1e-9 else { return 0 }
      let first = search.middle + low
      let correlations = products(wanted, samples, from: first, count: high - low + 1)
      var energies = [energy(samples, from: first, count: wanted.count)]
      for start in first..<search.middle + high {
        energies.append(
          energy(energies[start - first], samples, movedFrom: start, count: wanted.count))
      }
      var best = (offset: coarse, score: -Double.infinity)
      func consider(_ offset: Int) {
        guard low...high ~= offset else { return }
        let score =
          correlations[offset - low]
          / (Double(power) * max(energies[offset - low], 1e-12)).squareRoot()
        if score > best.score, !excludes(offset) { best = (offset, score) }
      }
      consider(coarse)
      for distance in 1...span {
        consider(coarse - distance)
        consider(coarse + distance)
      }
      return best.offset
    }
  }

  /// Returns the sum of the squares of `count` samples.
  private static func energy(
    _ samples: UnsafeBufferPointer<Float>, from start: Int, count: Int
  ) -> Double {
    let part = samples.extracting(start..<start + count)
    return Double(product(part, part))
  }

  /// Returns the energy of the window one sample after `start`, given the energy of the window at
  /// `start`.
  private static func energy(
    _ energy: Double, _ samples: UnsafeBufferPointer<Float>, movedFrom start: Int, count: Int
  ) -> Double {
    let (gone, come) = (Double(samples[start]), Double(samples[start + count]))
    return max(0, energy + come * come - gone * gone)
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
      let correlations = products(wanted, all, from: first, count: last - first + 1)
      var energy = energy(all, from: first, count: length)
      var best = (offset: 0, score: -Double.infinity)
      for start in first...last {
        if start > first { energy = Self.energy(energy, all, movedFrom: start - 1, count: length) }
        let offset = start * steps.step - search.middle
        let correlation =
          correlations[start - first] / (Double(power) * max(energy, 1e-12)).squareRoot()
        let distance = Double(offset) / Double(max(1, search.reach))
        let score = correlation - Double(search.penalty) * distance * distance
        if score > best.score, !excludes(offset) { best = (offset, score) }
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

  /// Returns the offset at which a signal best matches a template, to a fraction of a sample; at
  /// most six samples in each direction.
  ///
  /// Returns zero for a low correlation. Tones need the fraction. At a sampling rate of 48 kHz, an
  /// error of half a sample shifts the phase of an 8 kHz tone by half a radian, and the shift would
  /// repeat at each grain boundary.
  package static func remainder(
    of wanted: [Float], around start: Int, in samples: [Float]
  ) -> Double {
    let power = Double(withBuffers(wanted, wanted) { product($0, $1) })
    guard power > 1e-9 else { return 0 }
    var distance = 0.0
    var first = 0.0
    var (center, products) = (0, NeighborProducts(wanted, around: start, in: samples))
    for step in 0..<6 {
      if (distance - Double(center)).magnitude >= 1 {
        center = Int(distance.rounded())
        products = NeighborProducts(wanted, around: start + center, in: samples)
      }
      let fit = products.estimator(at: distance - Double(center))
      let correlation = fit.wantedOther / (power * max(fit.other, 1e-12)).squareRoot()
      if step == 0 {
        // Below this correlation the estimated offset is unreliable. The limit still admits high
        // tones: at a sampling rate of 44.1 kHz, a 16 kHz tone that is half a sample off has a
        // correlation of 0.42.
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

  /// Returns the dot products of a template with a signal at consecutive start positions.
  static func products(
    _ wanted: UnsafeBufferPointer<Float>, _ samples: UnsafeBufferPointer<Float>, from start: Int,
    count: Int
  ) -> [Double] {
    precondition(start >= 0 && start + count - 1 + wanted.count <= samples.count)
    return [Double](unsafeUninitializedCapacity: count) { made, filled in
      // Computes the products at four positions at a time, so that each part of the template is
      // loaded once for all four. The last group of four overlaps the one before it.
      for first in stride(from: 0, to: count, by: 4) where count >= 4 {
        let index = min(first, count - 4)
        let sums = fourProducts(wanted, samples, from: start + index)
        for lane in 0..<4 { made.initializeElement(at: index + lane, to: Double(sums[lane])) }
      }
      for index in 0..<(count < 4 ? count : 0) {
        let part = samples.extracting(start + index..<start + index + wanted.count)
        made.initializeElement(at: index, to: Double(product(wanted, part)))
      }
      filled = count
    }
  }

  private static func fourProducts(
    _ wanted: UnsafeBufferPointer<Float>, _ samples: UnsafeBufferPointer<Float>, from start: Int
  ) -> SIMD4<Float> {
    typealias Eight = SIMD8<Float>
    let whole = wanted.count & ~7
    var (a, b, c, d) = (Eight.zero, Eight.zero, Eight.zero, Eight.zero)
    let left = UnsafeRawBufferPointer(wanted)
    let right = UnsafeRawBufferPointer(samples.extracting(start..<start + wanted.count + 3))
    var index = 0
    while index < whole * 4 {
      let value = left.loadUnaligned(fromByteOffset: index, as: Eight.self)
      a += value * right.loadUnaligned(fromByteOffset: index, as: Eight.self)
      b += value * right.loadUnaligned(fromByteOffset: index + 4, as: Eight.self)
      c += value * right.loadUnaligned(fromByteOffset: index + 8, as: Eight.self)
      d += value * right.loadUnaligned(fromByteOffset: index + 12, as: Eight.self)
      index += 32
    }
    var sums = SIMD4(a.sum(), b.sum(), c.sum(), d.sum())
    for index in whole..<wanted.count {
      let other = right.loadUnaligned(fromByteOffset: index * 4, as: SIMD4<Float>.self)
      sums += wanted[index] * other
    }
    return sums
  }

  /// Returns the dot product of two signals, computed in eight SIMD lanes.
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
