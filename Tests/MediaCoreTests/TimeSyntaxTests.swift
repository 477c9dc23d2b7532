// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

/// The syntax of times, and how they resolve in one source.
struct TimeSyntaxTests {
  @Test(
    "Resolves time expressions against a 10 s source at 240 fps",
    arguments: [
      ("0", "0/1"), ("1.25", "5/4"), ("1.25s", "5/4"), ("007", "7/1"), ("1.50000000000000", "3/2"),
      ("0.000000001", "1/1000000000"), ("1/3", "1/3"), ("1/3s", "1/3"), ("2/4ms", "1/2000"),
      ("250ms", "1/4"), ("40us", "1/25000"), ("40µs", "1/25000"), ("40μs", "1/25000"),
      ("0.5us", "1/2000000"), ("7ns", "7/1000000000"), ("2min", "120/1"), ("0.5min", "30/1"),
      ("1m", "60/1"), ("90m", "5400/1"), ("1/3m", "20/1"), ("1h", "3600/1"), ("0.5h", "1800/1"),
      ("1h30m", "5400/1"), ("1m30s", "90/1"), ("1h90m", "9000/1"), ("1min2.5s", "125/2"),
      ("1h2m3s4ms5us6ns", "3723004005006/1000000000"), ("1h0.25m", "3615/1"),
      ("1:02.5", "125/2"), ("00:01:02.500", "125/2"), ("0:00", "0/1"), ("59:59", "3599/1"),
      ("100:00:00", "360000/1"), ("1:00:00", "3600/1"),
      ("0f", "0/1"), ("120f", "1/2"), ("2400f", "10/1"),
      ("start", "0/1"), ("end", "10/1"), ("-0", "10/1"), ("-0f", "10/1"),
      ("-2s", "8/1"), ("-2", "8/1"), ("-250ms", "39/4"), ("-0:02.5", "15/2"), ("-10", "0/1"),
      ("-1f", "2399/240"), ("-120f", "19/2"), ("-2400f", "0/1"),
      ("9223372036854775807", "9223372036854775807/1"), ("20", "20/1"),
    ])
  func meaning(text: String, seconds: String) throws {
    let written = try TimeExpression(parsing: text)
    #expect(try resolved(written).seconds == Rational(parsing: seconds))
    #expect(try TimeExpression(parsing: written.description) == written)
  }

  @Test(
    "A time expression is printed in its canonical form",
    arguments: [
      ("1.250s", "1.25"), ("1:02.500", "62.5"), ("0", "0"), ("start", "0"), ("1/3", "1/3"),
      ("120f", "120f"), ("00120f", "120f"), ("end", "end"), ("-0ms", "end"), ("-0f", "end"),
      ("-2", "-2s"), ("-250ms", "-0.25s"), ("-1/3", "-1/3s"), ("-1f", "-1f"),
      ("7ns", "0.000000007"),
    ])
  func printing(text: String, canonical: String) throws {
    #expect(try TimeExpression(parsing: text).description == canonical)
  }

  @Test(
    "A text that is not a time is a syntax error",
    arguments: [
      "", " ", "+", "-", ".", "..", "+1", "--1", "1 ", " 1", "1 s", "1e5", "nan", "inf", "0x10",
      ".5", "5.", "1.2.3", "1,5", "1_000", "1s2", "1M", "1H", "1h30", "30m1h", "1m1min", "1m1m",
      "1.5h30m",
      "1/2h30m", "1h-30m", "1h 30m", "1h1f", "1h1:00", "1d", "1hour", "1mm", "1S", "END", "-end",
      "-start", "End",
      "f", "-f", "1.5f", "1/2f", "1:02f", "120F", "1:75", "75:00", "1:60:00", "1:2", "1:002",
      "1:2:03", "1:02:3", "1:02s", ":02", "1:", "1:-2", "1::2", "1:02:03:04", "1/", "/2", "1/-2",
      "1/2/3", "1\0", "\0", "1\n", "１", "١", "२", "1\u{301}", "½", "−2", "2s\u{200B}", "1:02.",
      "1:02,5", "1..2", "s", "ms", "1ms ", "1%", "1x",
    ])
  func refusal(text: String) {
    #expect(code { _ = try TimeExpression(parsing: text) } == .syntax)
    #expect(code { _ = try MediaTime(parsing: text) } == .syntax)
  }

  @Test(
    "Parsing a time that MediaTime cannot store throws overflow",
    arguments: [
      "9223372036854775808", "99999999999999999999f", "0.0000000001", "1/2147483648",
      "153722867280912931min", "9223372036854775807:00:00", "99999999999999999999:00:00",
      "2562047788015216h", "9223372036854775807m1s",
      String(repeating: "9", count: 100_000), "0." + String(repeating: "0", count: 100_000) + "1",
      "1/" + String(repeating: "9", count: 100_000),
    ])
  func overflow(text: String) {
    #expect(code { _ = try TimeExpression(parsing: text) } == .overflow)
    #expect(code { _ = try TimeExpression(parsing: "-" + text) } == .overflow)
  }

  @Test func `Parses a number with a million leading and trailing zeros`() throws {
    let zeros = String(repeating: "0", count: 1_000_000)
    #expect(try TimeExpression(parsing: zeros + "1." + zeros) == TimeExpression(parsing: "1"))
    #expect(code { _ = try TimeExpression(parsing: "1/" + zeros) } == .notPositive)
  }

  @Test(
    "Parses a duration with units or as a clock time",
    arguments: [
      ("2", 2_000_000), ("1m", 60_000_000), ("1h30m", 5_400_000_000), ("250ms", 250_000),
      ("1:02.5", 62_500_000), ("40us", 40),
    ])
  func duration(text: String, microseconds: Int64) throws {
    #expect(try MediaTime(parsing: text) == MediaTime(microseconds: microseconds))
  }

  @Test(
    "Refuses a frame number or a keyword or a sign as a duration",
    arguments: ["120f", "end", "start", "-2s"])
  func noDuration(text: String) {
    #expect(code { _ = try MediaTime(parsing: text) } == .syntax)
  }

  @Test(
    "Refuses a time or frame outside the source",
    arguments: [
      "-10.001", "-2401f", "2401f", "9223372036854775807f", "-9223372036854775807f",
    ])
  func outside(text: String) throws {
    let written = try TimeExpression(parsing: text)
    #expect(code { _ = try resolved(written) } == .outsideSource)
  }

  @Test func `A time expression cannot hold a negative time or frame`() throws {
    let negative = MediaTime(seconds: -1)
    #expect(code { _ = try TimeExpression(negative) } == .outsideSource)
    #expect(code { _ = try TimeExpression(beforeEnd: negative) } == .outsideSource)
    #expect(code { _ = try TimeExpression(frame: -1) } == .outsideSource)
    #expect(code { _ = try TimeExpression(framesBeforeEnd: .min) } == .outsideSource)
  }

  @Test func `Only a time given as a frame number reads the frame table`() throws {
    let noIndex = MediaError(.readFailed, "no index")
    let noCount = MediaError(.readFailed, "no count")
    for text in ["1.5", "end", "-2s", "start", "1:00"] {
      let written = try TimeExpression(parsing: text)
      #expect(!written.needsFrames)
      _ = try written.resolved(sourceDuration: MediaTime(seconds: 10), frameCount: fail()) {
        (_) throws(MediaError) in throw noIndex
      }
    }
    for text in ["1f", "-1f"] {
      let written = try TimeExpression(parsing: text)
      #expect(written.needsFrames)
      #expect(throws: noIndex) {
        try written.resolved(sourceDuration: MediaTime(seconds: 10), frameCount: 3) {
          (_) throws(MediaError) in throw noIndex
        }
      }
      #expect(throws: noCount) { try resolved(written, frameCount: fail()) }
    }
    func fail() throws(MediaError) -> Int64 { throw noCount }
  }

  @Test(
    "The error for an invalid time quotes the text",
    arguments: [
      ("1:75", #""1:75" is not a time: minutes and seconds of a clock end at 59"#),
      (
        "1e5",
        #""1e5" is not a time: write seconds (1.25), 250ms, 40us, 1m30s, 1:02.5, 120f, @mark, end, or -2s from the end"#
      ),
      ("1/0", #""1/0" is not a time: it divides by zero"#),
      (
        "0.0000000001",
        #""0.0000000001" is not a time: the time 1e-10 s (1/10000000000) exceeds the range of exact times"#
      ),
    ])
  func sentence(text: String, expected: String) {
    #expect(message { _ = try TimeExpression(parsing: text) } == expected)
  }

  @Test func `The error for an invalid time escapes and truncates the text`() throws {
    let text = "\u{1B}[2J\n\0\u{202E}é" + String(repeating: "x", count: 1_000_000)
    let shown = try #require(message { _ = try TimeExpression(parsing: text) })
    #expect(shown.hasPrefix(#""\u{1B}[2J\n\0\u{202E}éxxx"#))
    #expect(shown.unicodeScalars.count < 200)
  }

  @Test func `A printed time expression parses as the same expression`() {
    forAll(40_000) { random in
      let written: TimeExpression
      switch random.below(4) {
      case 0: written = try TimeExpression(random.writableTime())
      case 1: written = try TimeExpression(beforeEnd: random.writableTime())
      case 2: written = try TimeExpression(frame: random.int64() & .max)
      default: written = try TimeExpression(framesBeforeEnd: random.int64() & .max)
      }
      let again = try TimeExpression(parsing: written.description)
      return again == written && again.hashValue == written.hashValue
        ? nil : "\(written) reads as \(again)"
    }
  }
}

/// Resolves a time in a source of 10 s with 2400 frames.
private func resolved(
  _ written: TimeExpression, frameCount: @autoclosure () throws(MediaError) -> Int64 = 2400
) throws(MediaError) -> MediaTime {
  try written.resolved(sourceDuration: MediaTime(seconds: 10), frameCount: frameCount()) {
    (frame) throws(MediaError) in
    #expect((0..<2400).contains(frame))
    return MediaTime(frame, over: 240)
  }
}

/// The message of the error that a closure throws, or nil if it throws none.
func message(_ body: () throws -> Void) -> String? {
  do {
    try body()
    return nil
  } catch {
    return "\(error)"
  }
}
