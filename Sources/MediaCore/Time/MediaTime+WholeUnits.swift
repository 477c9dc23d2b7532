// SPDX-License-Identifier: Apache-2.0

extension MediaTime {
  /// Whole nanoseconds, to the nearest; the nearest that fit 64 bits where they do not.
  package var wholeNanoseconds: Int64 { whole(per: 1_000_000_000) }

  /// Whole microseconds, to the nearest; the nearest that fit 64 bits where they do not.
  package var wholeMicroseconds: Int64 { whole(per: 1_000_000) }

  private func whole(per second: Int128) -> Int64 {
    // 64 bits times 30 bits, and half of 31 bits more, fit 128 bits.
    let (product, scale) = (Int128(value) * second, Int128(timescale))
    let magnitude = (2 * Int128(product.magnitude) + scale) / (2 * scale)
    return Int64(clamping: product < 0 ? -magnitude : magnitude)
  }
}

extension Duration {
  /// Whole nanoseconds, toward zero; the nearest that fit 64 bits where they do not.
  package var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return Int64(
      clamping: Int128(seconds) * 1_000_000_000 + Int128(attoseconds / 1_000_000_000))
  }

  /// Seconds for display, never for deciding.
  package var doubleValue: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
