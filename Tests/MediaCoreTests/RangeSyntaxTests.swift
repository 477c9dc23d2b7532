// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

/// The syntax of time ranges, and how they resolve in one source.
struct RangeSyntaxTests {
  @Test(
    "Resolves range expressions against a 10 s source at 240 fps",
    arguments: [
      ("1.2..1.5", "6/5", "3/2"), ("2..end", "2/1", "10/1"), ("0.5+1.25", "1/2", "7/4"),
      ("-2s..end", "8/1", "10/1"), ("-2s..-1s", "8/1", "9/1"), ("start..end", "0/1", "10/1"),
      ("3..", "3/1", "10/1"), ("..3", "0/1", "3/1"), ("..-1f", "0/1", "2399/240"),
      ("120f..240f", "1/2", "1/1"), ("0f..2400f", "0/1", "10/1"), ("-120f..end", "19/2", "10/1"),
      ("120f..1", "1/2", "1/1"), ("120f+1", "1/2", "3/2"), ("120f+60f", "1/2", "3/4"),
      ("-120f+60f", "19/2", "39/4"), ("-120f+120f", "19/2", "10/1"), ("start+240f", "0/1", "1/1"),
      ("0:01..1:02.5", "1/1", "125/2"), ("250ms+40us", "1/4", "6251/25000"),
      ("1/3..2/3", "1/3", "2/3"),
      ("-10..20", "0/1", "20/1"), ("1+1:00", "1/1", "61/1"), ("end+1", "10/1", "11/1"),
    ])
  func meaning(text: String, start: String, end: String) throws {
    let written = try TimeRangeExpression(parsing: text)
    let range = try resolved(written)
    #expect(try range.start.seconds == Rational(parsing: start))
    #expect(try range.end.seconds == Rational(parsing: end))
    #expect(try TimeRangeExpression(parsing: written.description) == written)
  }

  @Test(
    "A named mark in a range expression stands for its time",
    arguments: [
      ("@run..@hit", "1/1", "5/2"), ("@hit+1", "5/2", "7/2"), ("..@ball hit", "0/1", "3/1"),
      ("@hit..end", "5/2", "10/1"), ("@run-0.2..@hit+250ms", "4/5", "11/4"),
      ("0.5..@hit-1/3", "1/2", "13/6"), ("@hit-1+2", "3/2", "7/2"), ("@run+1", "1/1", "2/1"),
      ("@a..b..@hit", "2/1", "5/2"), ("@a..b+1", "2/1", "3/1"), ("@run+1+1", "3/2", "5/2"),
      ("@run+1..@hit", "3/2", "5/2"),
    ])
  func marks(text: String, start: String, end: String) throws {
    let written = try TimeRangeExpression(parsing: text)
    #expect(!written.needsFrames && written.description.contains("@"))
    let range = try written.resolved(
      sourceDuration: MediaTime(seconds: 10), frameCount: 2_400,
      frameTime: { (_) throws(MediaError) in .zero }, markTime: markTime)
    #expect(try range.start.seconds == Rational(parsing: start))
    #expect(try range.end.seconds == Rational(parsing: end))
    #expect(try TimeRangeExpression(parsing: written.description) == written)
    // The name of a mark cannot be resolved in a source without marks.
    #expect(code { _ = try resolved(written) } == .outsideSource)
    #expect(code { _ = try TimeRangeExpression(parsing: "@..1") } == .syntax)
  }

  @Test(
    "A range expression counts frames from a mark",
    arguments: [
      ("@hit+60f", "5/2", "11/4"), ("@hit-60f..@hit+1f", "9/4", "601/240"),
      ("@between+1f..end", "601/240", "10/1"), ("@between-0f+2f", "5/2", "301/120"),
      ("@run..@hit-360f", nil, nil), ("@run-241f..@hit", nil, nil), ("@hit+1801f..end", nil, nil),
    ] as [(String, String?, String?)])
  func frames(text: String, start: String?, end: String?) throws {
    let written = try TimeRangeExpression(parsing: text)
    #expect(written.needsFrames)
    #expect(try TimeRangeExpression(parsing: written.description) == written)
    func resolve() throws(MediaError) -> TimeRange {
      try written.resolved(
        sourceDuration: MediaTime(seconds: 10), frameCount: 2_400,
        frameTime: { (index) throws(MediaError) in MediaTime(index, over: 240) },
        markTime: markTime)
    }
    guard let start, let end else {
      #expect(code { _ = try resolve() } != nil)
      return
    }
    #expect(try resolve().start.seconds == Rational(parsing: start))
    #expect(try resolve().end.seconds == Rational(parsing: end))
  }

  @Test(
    "Refuses a range of marks that can be read in two ways",
    arguments: ["@a..@b..@c", "@a..@b..1", "@a..@b.."])
  func ambiguity(text: String) {
    #expect(code { _ = try TimeRangeExpression(parsing: text) } == .syntax)
  }

  /// The marks of the source; the name of one ends like an offset.
  private func markTime(_ name: String) throws(MediaError) -> MediaTime {
    let times = [
      "run": MediaTime(seconds: 1), "hit": MediaTime(5, over: 2), "ball hit": MediaTime(seconds: 3),
      "a..b": MediaTime(seconds: 2), "run+1": MediaTime(3, over: 2),
      "between": MediaTime(5_001, over: 2_000),
    ]
    guard let time = times[name] else { throw .unknownMark(name, among: times.keys.sorted()) }
    return time
  }

  @Test(
    "A text that is not a time range is a syntax error",
    arguments: [
      "", " ", "+", "..", ".", "...", "....", "1", "1.5", "end", "1..2..3", "1...2", "1.. 2",
      "1 ..2",
      "1-2", "1:2", "+1", "1+", "1++2", "1+2+3", "1..+2", "1+..2", "1+end", "1+-1", "1+start",
      "a..b", "1..x", "x..1", "1..2s3", "1+x", "-+1", "1..\0", "1\0..2", "1‥2", "1…2", "1+2f",
      "end+1f", "-2s+1f", "..+1",
    ])
  func refusal(text: String) {
    #expect(code { _ = try TimeRangeExpression(parsing: text) } == .syntax)
  }

  @Test(
    "Refuses an empty or reversed range when it is parsed",
    arguments: [
      "1..1", "0.5..1/2", "2..1", "end..end", "end..", "..start", "..0", "-1s..-2s", "end..-1s",
      "120f..120f", "120f..119f", "-1f..-2f", "1+0", "1+0f", "120f+0f", "120f+0",
    ])
  func empty(text: String) {
    #expect(code { _ = try TimeRangeExpression(parsing: text) } == .emptyRange)
  }

  @Test(
    "Refuses a range that is empty or reversed in a 10 s source",
    arguments: ["10..end", "11..end", "-1s..5", "2400f..end", "end..5", "120f..0.5", "..-10"])
  func emptyHere(text: String) throws {
    let written = try TimeRangeExpression(parsing: text)
    #expect(code { _ = try resolved(written) } == .emptyRange)
  }

  @Test(
    "Refuses a range of frames outside the source",
    arguments: ["0f..2401f", "2300f+101f", "-1f+2f", "1f+9223372036854775807f", "-11s..end"])
  func outside(text: String) throws {
    let written = try TimeRangeExpression(parsing: text)
    #expect(code { _ = try resolved(written) } == .outsideSource)
  }

  @Test(
    "The error for an invalid range quotes the invalid part",
    arguments: [
      ("2..1", #""2..1" is not a range: it ends before it starts"#),
      ("1+0", #""1+0" is not a range: it is empty"#),
      (
        "1..1:75",
        #""1..1:75" is not a range: "1:75" is not a time: minutes and seconds of a clock end at 59"#
      ),
      (
        "1.5",
        #""1.5" is not a range: write start..end (1.2..1.5, 2..end) or start+duration (0.5+1.25)"#
      ),
    ])
  func sentences(text: String, expected: String) {
    #expect(message { _ = try TimeRangeExpression(parsing: text) } == expected)
  }

  @Test func `Only a range with frame numbers needs the frame table`() throws {
    for (text, needsFrames) in [
      ("1..2", false), ("-1s..end", false), ("1+2", false), ("1f..2", true), ("0..-1f", true),
      ("1f+2", true), ("start+2f", true),
    ] {
      #expect(try TimeRangeExpression(parsing: text).needsFrames == needsFrames, "\(text)")
    }
    #expect(try resolved(.whole) == TimeRange(duration: MediaTime(seconds: 10)))
  }

  @Test func `A printed range expression parses as the same expression`() {
    var madeCount = 0
    forAll(30_000) { random in
      let start = try random.expression()
      let written: TimeRangeExpression
      do {
        switch random.below(3) {
        case 0: written = try TimeRangeExpression(start: start, end: random.expression())
        case 1: written = try TimeRangeExpression(start: start, duration: random.writableTime())
        default:
          written = try TimeRangeExpression(start: start, frameCount: random.int64() & .max)
        }
      } catch let error as MediaError {
        // Random ends may be in reverse order, and a frame count needs a start given as a frame.
        return error.code == .emptyRange || error.code == .syntax ? nil : "\(error)"
      }
      madeCount += 1
      let again = try TimeRangeExpression(parsing: written.description)
      return again == written && again.hashValue == written.hashValue
        ? nil : "\(written) reads as \(again)"
    }
    #expect(madeCount > 15_000)
  }
}

/// Resolves a range in a source of 10 s with 2400 frames.
private func resolved(_ written: TimeRangeExpression) throws -> TimeRange {
  try written.resolved(sourceDuration: MediaTime(seconds: 10), frameCount: 2400) {
    (frame) throws(MediaError) in
    #expect((0..<2400).contains(frame))
    return MediaTime(frame, over: 240)
  }
}

extension SeededGenerator {
  fileprivate mutating func expression() throws -> TimeExpression {
    switch below(5) {
    case 0: try TimeExpression(writableTime())
    case 1: try TimeExpression(beforeEnd: writableTime())
    case 2: try TimeExpression(frame: int64() & .max)
    case 3: try TimeExpression(framesBeforeEnd: int64() & .max)
    default: pick([.start, .end])
    }
  }
}
