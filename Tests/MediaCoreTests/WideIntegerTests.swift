// SPDX-License-Identifier: Apache-2.0

import BigInt
import Testing

@testable import OvercrankMediaCore

struct WideIntegerTests {
  @Test func `Products and differences of wide integers have exact signs`() {
    forAll(20_000) { random in
      let numbers = (0..<4).map { _ in random.int128() }
      let wide = numbers.map { WideInteger($0) }
      let big = numbers.map { BigInt($0) }
      // Products that are equal, nearly equal, or far apart.
      let left = wide[0] * wide[1] * wide[0]
      let sums = [
        (left - wide[2] * wide[3], big[0] * big[1] * big[0] - big[2] * big[3]),
        (left + wide[2] - left, big[2]),
        (left * left - left * left + wide[3] - wide[3], BigInt(0)),
        ((left + wide[2]) * wide[3] - left * wide[3], big[2] * big[3]),
      ]
      for (position, (found, expected)) in sums.enumerated() where found.sign != expected.signum() {
        return "\(numbers), case \(position): \(found)"
      }
      return nil
    }
  }
}
