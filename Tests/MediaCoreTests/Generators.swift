// SPDX-License-Identifier: Apache-2.0

import BigInt
import OvercrankMediaCore
import TestSupport

/// Numbers at which integer code often fails.
private let edges: [Int64] = [
  .min, .min + 1, .max, .max - 1, 0, 1, -1, 2, -2, 3, 7, 1001, 30_000, 60_000, 65_537,
  Int64(Int32.max), Int64(Int32.min), Int64(Int32.max) + 1, 1 << 53, -(1 << 53), 1 << 62,
  9_223_372_036_854_775_783,  // The greatest prime below 2^63.
  1_000_000_007, -1_000_000_009, 1_000_000_000,
]

private let timescales: [Int32] = [
  1, 2, 3, 7, 600, 1000, 1001, 24_000, 30_000, 48_000, 44_100, 60_000, 90_000, 240_000, 1_000_000,
  999_983, 1_000_000_000, .max, .max - 1, 1 << 30, 2_147_483_629,
]

extension SeededGenerator {
  /// A number of random bit width, so that small numbers are as likely as large ones.
  ///
  /// It is often an edge case.
  mutating func int64() -> Int64 {
    switch below(4) {
    case 0: pick(edges)
    case 1: Int64(below(41)) - 20
    default: Int64(truncatingIfNeeded: next()) >> Int64(below(64))
    }
  }

  /// A timescale above zero.
  ///
  /// It is often one that movies use, or one near the limit.
  mutating func timescale() -> Int32 {
    switch below(3) {
    case 0: pick(timescales)
    default: max(1, Int32(truncatingIfNeeded: next() >> 33) >> Int32(below(31)))
    }
  }

  mutating func time() throws -> MediaTime {
    MediaTime(int64(), over: timescale())
  }

  /// A time that is not negative, so that it can be written in the syntax.
  mutating func writableTime() throws -> MediaTime {
    MediaTime(Int64(int64().magnitude & 0x7FFF_FFFF_FFFF_FFFF), over: timescale())
  }

  /// A time that is not negative and below 2^`bits` ticks.
  mutating func time(bits: Int, timescale: Int32) throws -> MediaTime {
    let value = Int64(next() >> UInt64(64 - bits)) >> Int64(below(3) == 0 ? below(bits) : 0)
    return MediaTime(value, over: timescale)
  }

  mutating func int128() -> Int128 {
    let wideEdges: [Int128] = [.min, .min + 1, .max, .max - 1, 1 << 64, 1 << 126, -(1 << 126)]
    switch below(4) {
    case 0: return pick(wideEdges)
    case 1: return Int128(int64())
    default:
      let wide = UInt128(next()) << 64 | UInt128(next())
      return Int128(truncatingIfNeeded: wide) >> Int128(below(128))
    }
  }

  mutating func rational() throws -> Rational {
    var below = int128()
    while below <= 0 { below = below == 0 || below == .min ? 1 : -below }
    return Rational(int128(), over: below)
  }

  /// Two fractions whose sum fits in a `Rational` only after it is reduced.
  ///
  /// Before the reduction, half of the sums need 256 bits.
  mutating func cancellingRationals() throws -> (Rational, Rational) {
    let shared = BigInt(next() >> 4) + 1
    let (x, y) = (BigInt(next() >> 48) + 1, BigInt(next() >> UInt64(16 + below(8))) + 1)
    let first = BigInt(int128())
    // The sum is first/(shared·x) + second/(shared·x·y) = k/(x·y).
    let k = first * y / shared
    let second = k * shared - first * y
    guard [first, second, shared * x * y].allSatisfy({ $0.fits(Int128.self) }) else {
      return try (rational(), rational())
    }
    return (
      Rational(Int128(first), over: Int128(shared * x)),
      Rational(Int128(second), over: Int128(shared * x * y))
    )
  }

  mutating func rationals() throws -> (Rational, Rational) {
    try below(4) == 0 ? cancellingRationals() : (rational(), rational())
  }
}
