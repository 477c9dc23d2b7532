// SPDX-License-Identifier: Apache-2.0

import BigInt
import OvercrankMediaCore
import TestSupport
import Testing

/// Arithmetic of ``MediaTime``, compared with integers of unlimited size.
struct MediaTimeTests {
  @Test func `Sums of times are exact or overflow`() {
    forAll(.timeSum) { random in
      let (left, right) = try (random.time(), random.time())
      let sum = Result { () throws(MediaError) in try MediaTime(left + right) }
      return complaint(sum, expected: Fraction(left) + Fraction(right)).map {
        "\(left) + \(right): \($0)"
      }
    }
  }

  @Test func `Differences of times are exact or overflow`() {
    forAll(.timeDifference) { random in
      let (left, right) = try (random.time(), random.time())
      let difference = Result { () throws(MediaError) in try MediaTime(left - right) }
      return complaint(difference, expected: Fraction(left) - Fraction(right)).map {
        "\(left) - \(right): \($0)"
      }
    }
  }

  @Test func `Products of a time and a number are exact or overflow`() {
    forAll(.timeProduct) { random in
      let (time, factor) = try (random.time(), random.rational())
      let product = Result { () throws(MediaError) in try MediaTime(time * factor) }
      return complaint(product, expected: Fraction(time) * Fraction(factor)).map {
        "\(time) * \(factor): \($0)"
      }
    }
  }

  @Test func `Subtracting the most negative time is exact or overflows`() throws {
    let least = MediaTime(seconds: .min)
    #expect(least - least == 0)
    #expect(try MediaTime(MediaTime(seconds: -1) - least) == MediaTime(seconds: .max))
    #expect(code { _ = try MediaTime(MediaTime.zero - least) } == .overflow)
  }

  @Test func `Times are compared by their exact values`() {
    forAll(.timeComparison) { random in
      let (left, right) = try (random.time(), random.time())
      let order = Fraction(left).compared(to: Fraction(right))
      let answers = (left < right, left == right, left > right)
      return answers == (order < 0, order == 0, order > 0)
        ? nil : "\(left) against \(right): \(answers), not \(order)"
    }
  }

  @Test func `Equal times of different timescales have the same hash`() {
    forAll(.timeHash) { random in
      let time = try random.time()
      let factor = Int64(random.below(1000)) + 1
      let (value, overflow) = time.value.multipliedReportingOverflow(by: factor)
      guard !overflow, let timescale = Int32(exactly: Int64(time.timescale) * factor) else {
        return time.hashValue == time.hashValue ? nil : "\(time) hashes differently each time"
      }
      let other = MediaTime(value, over: timescale)
      return time == other && time.hashValue == other.hashValue && Set([time, other]).count == 1
        ? nil : "\(time) and \(other) differ"
    }
  }

  @Test func `Timescale conversion is exact in each of six rounding modes`() {
    forAll(.timeConversion) { random in
      let time = try random.time()
      let timescale = random.timescale()
      let exact = Fraction(BigInt(time.value) * BigInt(timescale), BigInt(time.timescale))
      for rounding in TimeRounding.allCases {
        let expected = exact.rounded(rounding, isFiner: timescale > time.timescale)
        let result = Result { () throws(MediaError) in
          try time.converted(to: timescale, rounding: rounding)
        }
        switch result {
        case .success(let converted):
          if BigInt(converted.value) != expected || converted.timescale != timescale {
            return "\(time) in 1/\(timescale) s \(rounding) is \(expected), not \(converted)"
          }
        case .failure(let error):
          if error.code != .overflow || expected.fits(Int64.self) {
            return "\(time) in 1/\(timescale) s \(rounding): \(error)"
          }
        }
      }
      return nil
    }
  }

  @Test func `Refuses a timescale of zero or below`() {
    for timescale: Int32 in [0, -1, .min] {
      #expect(MediaTime(exactly: 1, over: timescale) == nil)
      #expect(
        code { _ = try MediaTime.zero.converted(to: timescale, rounding: .towardZero) }
          == .notPositive)
    }
  }
}

/// The time with the value and timescale of a text such as `"2/240"`.
private func spelledTime(_ text: String) throws -> MediaTime {
  let terms = text.split(separator: "/")
  return MediaTime(
    try #require(Int64(terms[0])), over: try #require(Int32(terms[1])))
}
