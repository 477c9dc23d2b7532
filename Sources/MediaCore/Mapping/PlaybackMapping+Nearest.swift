// SPDX-License-Identifier: Apache-2.0

extension PlaybackMapping {
  /// Returns the source time that plays at an instant of the composition, in seconds.
  ///
  /// The result is exact if it is a fraction of 128-bit integers. Otherwise the instant is first
  /// rounded down to a multiple of 1/240000 s or, if that does not help, of 1/24000 s or 1/1000 s.
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
