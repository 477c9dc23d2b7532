// SPDX-License-Identifier: Apache-2.0

extension MediaTime {
  /// The time in nanoseconds, rounded to the nearest and clamped to 64 bits.
  package var wholeNanoseconds: Int64 { whole(per: 1_000_000_000) }

  /// The time in microseconds, rounded to the nearest and clamped to 64 bits.
  package var wholeMicroseconds: Int64 { whole(per: 1_000_000) }

  private func whole(per second: Int128) -> Int64 {
    // The value has 64 bits and `second` at most 30, so their product has at most 94 bits. Nothing
    // below exceeds 96 bits, so `Int128` cannot overflow.
    let (product, scale) = (Int128(value) * second, Int128(timescale))
    let magnitude = (2 * Int128(product.magnitude) + scale) / (2 * scale)
    return Int64(clamping: product < 0 ? -magnitude : magnitude)
  }
}

extension Duration {
  /// The duration in nanoseconds, rounded toward zero and clamped to 64 bits.
  package var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return Int64(
      clamping: Int128(seconds) * 1_000_000_000 + Int128(attoseconds / 1_000_000_000))
  }

  /// The duration in seconds, for display only; never use it for decisions.
  package var doubleValue: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
