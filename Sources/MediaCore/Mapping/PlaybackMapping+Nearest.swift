// SPDX-License-Identifier: Apache-2.0

extension PlaybackMapping {
  /// Returns the source time at an instant.
  ///
  /// The result is exact if it fits. Otherwise the instant is first rounded down to a multiple of
  /// 1/240000 s, or of a coarser unit.
  package func nearSourceSeconds(of time: Rational) -> Rational {
    if let exact = try? sourceSeconds(of: time) { return exact }
    for scale in [240_000, 24_000, 1_000] as [Int64] {
      guard let units = try? (time * Rational(scale)).rounded(.towardNegativeInfinity),
        let near = try? sourceSeconds(of: Rational(units, over: Int128(scale)))
      else { continue }
      return near
    }
    return isReversed ? sourceEnd : sourceStart
  }
}
