// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import Testing

/// The results of each rounding mode, in tables.
struct RoundingTests {
  @Test(
    "Each rounding mode is exact for halves and thirds",
    arguments: [
      // The columns are the times in seconds that are rounded to whole seconds:
      //                                 -1.5 -0.5  0.5  1.5  -4/3 -1/3  1/3  4/3  -5/3 -2/3 2/3 5/3
      (TimeRounding.halfAwayFromZero, [-2, -1, 1, 2, -1, 0, 0, 1, -2, -1, 1, 2]),
      (.towardZero, [-1, 0, 0, 1, -1, 0, 0, 1, -1, 0, 0, 1]),
      (.awayFromZero, [-2, -1, 1, 2, -2, -1, 1, 2, -2, -1, 1, 2]),
      (.quickTime, [-1, -1, 0, 1, -1, -1, 0, 1, -1, -1, 0, 1]),
      (.towardPositiveInfinity, [-1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2]),
      (.towardNegativeInfinity, [-2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1]),
    ])
  func wholeSeconds(rounding: TimeRounding, expected: [Int64]) throws {
    let halves = [-3, -1, 1, 3].map { MediaTime($0, over: 2) }
    let thirds = [-4, -1, 1, 4, -5, -2, 2, 5].map { MediaTime($0, over: 3) }
    let times = halves + thirds
    #expect(try times.map { try $0.converted(to: 1, rounding: rounding).value } == expected)
    #expect(try times.map { try Int64($0.seconds.rounded(rounding)) } == expected)
  }

  @Test(
    "QuickTime rounding rounds down only to a coarser timescale",
    arguments: [
      // The columns are value, timescale `from`, timescale `to`, and the rounded value.
      (1, 3, 4, 2), (-1, 3, 4, -2), (2, 3, 4, 3), (-2, 3, 4, -3),
      (3, 4, 3, 2), (-3, 4, 3, -2), (1, 4, 3, 0), (-1, 4, 3, -1), (0, 4, 3, 0),
      (7, 3, 3, 7), (-7, 3, 3, -7),
    ] as [(Int64, Int32, Int32, Int64)])
  func quickTime(value: Int64, from: Int32, to: Int32, expected: Int64) throws {
    let time = MediaTime(value, over: from)
    #expect(try time.converted(to: to, rounding: .quickTime).value == expected)
  }

  @Test(
    "Exact timescale conversion is equal in every rounding mode",
    arguments: TimeRounding.allCases)
  func exact(rounding: TimeRounding) throws {
    for value: Int64 in [-240, -1, 0, 1, 239, 240] {
      let time = MediaTime(value, over: 240)
      #expect(try time.converted(to: 90_000, rounding: rounding).value == value * 375)
      #expect(
        try time.converted(to: 720, rounding: rounding).converted(to: 240, rounding: rounding)
          == time)
    }
    #expect(try MediaTime(microseconds: -1).nanoseconds(rounding) == -1000)
  }
}
