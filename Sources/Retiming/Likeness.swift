// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds which of many stretches of a sound is most like another one of its stretches.
enum Likeness {
  /// What is compared, in samples: places at which as many start as are wanted.
  struct Search {
    /// The stretch to be like.
    let wanted: [Float]
    /// The middle of those that may be like it, and how far either side they go.
    let middle: Int
    let reach: Int
    /// Only every so manyth place is tried at first; then all around the best.
    let step: Int
    /// What the outermost places must be better by, of likenesses of at most 1.
    let penalty: Float
  }

  /// The offset from the middle at which the sound is most like what is wanted; zero in silence.
  ///
  /// Excluded offsets are taken only where there are no others, and then zero.
  static func best(
    _ search: Search, in samples: [Float], excludes: (Int) -> Bool = { _ in false }
  ) -> Int {
    withBuffers(samples, search.wanted) { samples, wanted in
      let length = wanted.count
      let power = product(wanted, wanted)
      guard power > 1e-9 else { return 0 }
      // The power of each place, from that of all before it: exact enough in Double.
      let first = search.middle - search.reach
      var sum = 0.0
      var sums = [0.0]
      sums.reserveCapacity(2 * search.reach + length + 1)
      for index in first..<first + 2 * search.reach + length {
        sum += Double(samples[index] * samples[index])
        sums.append(sum)
      }
      var best = (offset: 0, score: -Float.infinity)
      func judge(_ offset: Int, penalty: Float = 0) {
        guard offset.magnitude <= search.reach, !excludes(offset) else { return }
        let start = search.middle + offset
        let other = samples.extracting(start..<start + length)
        let place = offset + search.reach
        let otherPower = Float(sums[place + length] - sums[place])
        let likeness = product(wanted, other) / (power * max(otherPower, 1e-12)).squareRoot()
        let distance = Float(offset) / Float(max(1, search.reach))
        let score = likeness - penalty * distance * distance
        if score > best.score { best = (offset, score) }
      }
      // From the middle outwards, so that of equals the nearest is taken.
      judge(0)
      for offset in stride(from: search.step, through: search.reach, by: search.step) {
        judge(offset, penalty: search.penalty)
        judge(-offset, penalty: search.penalty)
      }
      // Near the best it is likeness alone that counts: a tone would go off its phase.
      let coarse = best.offset
      best.score = -.infinity
      judge(coarse)
      for distance in 1..<max(2, search.step) {
        judge(coarse + distance)
        judge(coarse - distance)
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
    let power = withBuffers(wanted, wanted) { product($0, $1) }
    guard power > 1e-9 else { return 0 }
    func likeness(at distance: Double) -> Double {
      let whole = distance.rounded(.down)
      let other = BetweenSamples(distance - whole)
        .samples(of: samples, from: place + Int(whole), count: wanted.count)
      return withBuffers(wanted, other) { wanted, other in
        Double(product(wanted, other))
          / (Double(power) * Double(max(product(other, other), 1e-12))).squareRoot()
      }
    }
    // Low tones are so alike for many samples that the search, which likes what is near, may end
    // a few beside the best.
    var whole = 0
    var best = 0.0
    var angle = 0.0
    for _ in 0..<3 {
      let (before, here, after) = (
        likeness(at: Double(whole - 1)), likeness(at: Double(whole)),
        likeness(at: Double(whole + 1))
      )
      // At half a sample, 16 kHz is no more alike than this.
      guard here > 0.35 else { return 0 }
      // Of a tone, likeness is the cosine of the distance.
      let cosine = (before + after) / (2 * here)
      guard cosine.magnitude < 1 else { return Double(whole) }
      angle = acos(cosine)
      best = atan2(after - before, 2 * here * sin(angle)) / angle
      guard best.isFinite else { return Double(whole) }
      guard best.magnitude > 0.5, whole.magnitude < 6 else { break }
      whole += Int(min(max(best, -4), 4).rounded())
    }
    best = Double(whole) + min(max(best, -0.5), 0.5)
    // Of high sounds that are no tone only nearly so; a parabola through places close by is right.
    guard angle > 0.25 else { return best }
    let step = 1.0 / 16
    let (left, middle, right) = (
      likeness(at: best - step), likeness(at: best), likeness(at: best + step)
    )
    let bend = 2 * middle - left - right
    if bend > 1e-5 {
      let share: Double = (right - left) / (2 * bend)
      best += min(max(share, -1), 1) * step
    }
    return best
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
