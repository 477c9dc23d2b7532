// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

/// The syntax of frame rates, speeds and numbers.
struct RateSyntaxTests {
  @Test(
    "Parses a frame rate from a decimal or fraction",
    arguments: [
      ("240", "240/1"), ("0240.0", "240/1"), ("60000/1001", "60000/1001"), ("480/2", "240/1"),
      ("23.976", "24000/1001"), ("23.98", "24000/1001"), ("29.97", "30000/1001"),
      ("29.970", "30000/1001"), ("47.952", "48000/1001"), ("59.94", "60000/1001"),
      ("119.88", "120000/1001"), ("239.76", "240000/1001"),
      ("59.9401", "599401/10000"), ("23.97", "2397/100"), ("12.5", "25/2"), ("0.5", "1/2"),
      ("2997/100", "2997/100"), ("2147483647", "2147483647/1"), ("1/2147483647", "1/2147483647"),
    ])
  func frameRate(text: String, expected: String) throws {
    let rate = try FrameRate(parsing: text)
    #expect(rate.description == expected)
    #expect(try FrameRate(parsing: rate.description) == rate)
  }

  @Test(
    "Parses a speed from a decimal or fraction or percentage",
    arguments: [
      ("0.125", "1/8"), ("1/8", "1/8"), ("12.5%", "1/8"), ("1", "1/1"), ("100%", "1/1"),
      ("2", "2/1"), ("4/32", "1/8"), ("0.1", "1/10"), ("33.3%", "333/1000"), ("000.5", "1/2"),
    ])
  func speed(text: String, expected: String) throws {
    let speed = try Speed(parsing: text)
    #expect(speed.description == expected)
    #expect(try Speed(parsing: speed.description) == speed)
  }

  @Test(
    "Refuses a text that is neither a frame rate nor a speed",
    arguments: [
      "", " ", "+", "-", "+1", "1 ", " 1", "1e5", "nan", "inf", "0x10", ".5", "5.", "1.2.3", "1,5",
      "1..2", "1/", "/8", "1/-8", "1//8", "1/2/3", "1.5/2", "1/2.5", "1/8%", "%", "1%%", "8x",
      "240fps",
      "1\0", "\0", "１", "½", "1/８", "one", "1\u{301}", "--1", "1:8",
    ])
  func refusal(text: String) {
    #expect(code { _ = try FrameRate(parsing: text) } == .syntax)
    #expect(code { _ = try Speed(parsing: text) } == .syntax)
    #expect(code { _ = try Rational(parsing: text) } == .syntax)
  }

  @Test("A speed can be a percentage but a frame rate cannot")
  func percentage() {
    #expect(code { _ = try FrameRate(parsing: "12.5%") } == .syntax)
    #expect(code { _ = try Rational(parsing: "12.5%") } == .syntax)
  }

  @Test(
    "Refuses zero and negative frame rates and speeds",
    arguments: ["0", "0.000", "0/5", "-1", "-0", "-1/8", "-0.5", "1/0", "0/0"])
  func notPositive(text: String) {
    #expect(code { _ = try FrameRate(parsing: text) } == .notPositive)
    #expect(code { _ = try Speed(parsing: text) } == .notPositive)
  }

  @Test func `The error for an invalid frame rate or speed quotes the text`() {
    #expect(
      message { _ = try Speed(parsing: "0") } == #""0" is not a speed: it is not above zero"#)
    #expect(
      message { _ = try Speed(parsing: "8x") }
        == #""8x" is not a speed: write source seconds per output second as 0.125, 1/8 or 12.5%"#)
    #expect(
      message { _ = try FrameRate(parsing: "fast") }
        == #""fast" is not a frame rate: write frames per second as 240, 59.94 or 60000/1001"#)
  }

  @Test(
    "Numbers of any length are parsed exactly or overflow",
    arguments: [
      (String(repeating: "9", count: 38), true),
      ("170141183460469231731687303715884105727", true),
      ("170141183460469231731687303715884105728", false),
      (String(repeating: "0", count: 100_000) + "1", true),
      ("1" + String(repeating: "0", count: 100_000), false),
      ("0." + String(repeating: "0", count: 37) + "1", true),
      ("0." + String(repeating: "0", count: 38) + "1", false),
      ("1/" + String(repeating: "9", count: 38), true),
      ("1/" + String(repeating: "9", count: 39), false),
    ])
  func length(text: String, fits: Bool) {
    #expect(code { _ = try Speed(parsing: text) } == (fits ? nil : .overflow))
    #expect(code { _ = try Rational(parsing: "-" + text) } == (fits ? nil : .overflow))
  }

  @Test func `A frame rate has a 32-bit numerator and denominator`() {
    #expect(code { _ = try FrameRate(parsing: "2147483648") } == .overflow)
    #expect(code { _ = try FrameRate(parsing: "1/2147483648") } == .overflow)
    #expect(code { _ = try FrameRate(parsing: String(repeating: "9", count: 50)) } == .overflow)
  }

  @Test func `Printed numbers and rates and speeds parse as the same value`() {
    forAll(30_000) { random in
      let number = try random.rational()
      // The smallest numerator has no positive counterpart, so its text cannot be parsed.
      if number.numerator != .min, try Rational(parsing: number.description) != number {
        return "\(number) reads as \(try Rational(parsing: number.description))"
      }
      if number > .zero {
        let speed = try Speed(number)
        if try Speed(parsing: speed.description) != speed { return "\(speed) as a speed" }
      }
      let rate = FrameRate(Int(random.timescale()), over: Int(random.timescale()))
      return try FrameRate(parsing: rate.description) == rate ? nil : "\(rate) as a rate"
    }
  }
}
