// SPDX-License-Identifier: Apache-2.0

package import OvercrankMediaCore

extension SeededGenerator {
  /// A time that is small and round, or near the limits of `MediaTime`.
  package mutating func extremeTime() -> MediaTime {
    let value = Int64(bitPattern: next()) >> Int64(next() % 64)
    let scale = Int32(truncatingIfNeeded: next() >> 33) >> Int32(next() % 31)
    return switch next() % 4 {
    case 0: MediaTime(seconds: Int64(next() % 5))
    case 1: MediaTime(Int64(next() % 1_000), over: max(1, scale))
    case 2: MediaTime(value.magnitude > 1 << 62 ? .max : value, over: .max)
    default: MediaTime(value, over: max(1, scale))
    }
  }

  /// A common speed, or one near the limits of `Speed`.
  package mutating func extremeSpeed() -> Speed {
    let (above, below) = (Int128(next()), Int128(next()))
    return switch next() % 3 {
    case 0: Speed(1, over: 8)
    case 1: Speed(1 + Int(next() % 100), over: 1 + Int(next() % 100))
    default: Speed(exactly: Rational(above << 60 + 1, over: below + 1)) ?? .normal
    }
  }
}
