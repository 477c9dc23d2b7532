// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import Testing

/// The text forms of times.
struct ClockTests {
  @Test(
    "A time is displayed in hours minutes and seconds",
    arguments: [
      (0, 1, 3, "0:00.000"), (5, 4, 3, "0:01.250"), (125, 2, 3, "1:02.500"),
      (125, 2, 0, "1:03"), (125, 2, 9, "1:02.500000000"), (7205, 2, 1, "1:00:02.5"),
      (3_599_999, 1000, 3, "59:59.999"), (3_599_999, 1000, 2, "1:00:00.00"),
      (359_999, 1, 0, "99:59:59"), (-125, 2, 3, "-1:02.500"), (-1, 10_000, 3, "0:00.000"),
      (1, 3, 3, "0:00.333"), (2, 3, 3, "0:00.667"), (.max, 1, 0, "2562047788015215:30:07"),
      (.min, 1, 9, "-2562047788015215:30:08.000000000"),
    ] as [(Int64, Int32, Int, String)])
  func clock(value: Int64, timescale: Int32, decimals: Int, expected: String) throws {
    let time = MediaTime(value, over: timescale)
    #expect(time.clock(decimals: decimals, rounding: .halfAwayFromZero) == expected)
  }

  @Test(
    "A printed clock time is rounded in the requested direction",
    arguments: [
      (TimeRounding.towardZero, "0:01.9", "-0:01.9"),
      (.awayFromZero, "0:02.0", "-0:02.0"),
      (.halfAwayFromZero, "0:02.0", "-0:02.0"),
      (.towardPositiveInfinity, "0:02.0", "-0:01.9"),
      (.towardNegativeInfinity, "0:01.9", "-0:02.0"),
      (.quickTime, "0:01.9", "-0:01.9"),
    ])
  func rounding(rounding: TimeRounding, above: String, below: String) throws {
    #expect(MediaTime(microseconds: 1_950_000).clock(decimals: 1, rounding: rounding) == above)
    #expect(MediaTime(microseconds: -1_950_000).clock(decimals: 1, rounding: rounding) == below)
  }

  @Test func `A printed clock time parses as the rounded time`() {
    forAll(20_000) { random in
      let time = try random.writableTime()
      let text = time.clock(rounding: .towardZero)
      let expected = try Rational(
        (time.seconds * Rational(1000)).rounded(.towardZero), over: 1000)
      // Only a time of very many hours, in thousandths of a second, exceeds 64 bits.
      guard Int64(exactly: expected.numerator) != nil else { return nil }
      return try MediaTime(parsing: text).seconds == expected ? nil : "\(time) reads as \(text)"
    }
  }

  @Test(
    "A rounded time in text is followed by the exact fraction",
    arguments: [
      (0, 1, "0", "0 s"), (5, 4, "1.25", "1.25 s"), (-5, 4, "-1.25", "-1.25 s"),
      (7, 1_000_000_000, "0.000000007", "0.000000007 s"),
      (1001, 30_000, "0.033367", "0.033367 s (1001/30000)"),
      (-1001, 30_000, "-0.033367", "-0.033367 s (-1001/30000)"),
      (2, 3, "0.666667", "0.666667 s (2/3)"), (3_000_000, 3, "1000000", "1000000 s"),
      (1, 2_000_000_001, "4.9999999975e-10", "4.9999999975e-10 s (1/2000000001)"),
      (.max, 1, "9223372036854775807", "9223372036854775807 s"),
    ] as [(Int64, Int32, String, String)])
  func display(value: Int64, timescale: Int32, short: String, exact: String) throws {
    let time = MediaTime(value, over: timescale)
    #expect(time.displayText == short)
    #expect(time.exactDisplayText == exact)
    #expect(
      try TimeRange(start: min(time, .zero), end: max(time, .zero)).displayText.contains(short))
  }

  @Test func `A printed clock time has at most 9 decimals`() async {
    await #expect(processExitsWith: .failure) {
      _ = MediaTime.zero.clock(decimals: 10, rounding: .towardZero)
    }
  }
}
