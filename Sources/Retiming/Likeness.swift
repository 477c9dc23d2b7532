// SPDX-License-Identifier: Apache-2.0

/// Finds which of many stretches of a sound is most like another one of its stretches.
enum Likeness {
  /// What is compared, in samples: places at which `length` samples start.
  struct Search {
    /// The stretch to be like.
    let wanted: Int
    /// The middle of those that may be like it, and how far either side they go.
    let middle: Int
    let reach: Int
    let length: Int
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
    samples.withUnsafeBufferPointer { samples in
      let wanted = samples.extracting(search.wanted..<search.wanted + search.length)
      let power = product(wanted, wanted)
      guard power > 1e-9 else { return 0 }
      // The power of each place, from that of all before it: exact enough in Double.
      let first = search.middle - search.reach
      var sum = 0.0
      var sums = [0.0]
      sums.reserveCapacity(2 * search.reach + search.length + 1)
      for index in first..<first + 2 * search.reach + search.length {
        sum += Double(samples[index] * samples[index])
        sums.append(sum)
      }
      var best = (offset: 0, score: -Float.infinity)
      func judge(_ offset: Int, penalty: Float = 0) {
        guard offset.magnitude <= search.reach, !excludes(offset) else { return }
        let start = search.middle + offset
        let other = samples.extracting(start..<start + search.length)
        let place = offset + search.reach
        let otherPower = Float(sums[place + search.length] - sums[place])
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
