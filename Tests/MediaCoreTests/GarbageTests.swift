// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import TestSupport
import Testing

/// Parsers of times and speeds, tested with random texts.
struct GarbageTests {
  /// A crash would end the test process.
  ///
  /// An accepted text must be printed and parsed as the same value.
  @Test func `Parsing random texts never crashes`() {
    forAll(100_000) { random in
      let text = random.text()
      do {
        let time = try TimeExpression(parsing: text)
        if try TimeExpression(parsing: "\(time)") != time { return "\(text) as \(time)" }
      } catch let error as MediaError where isRefusal(error, of: text) {}
      do {
        let range = try TimeRangeExpression(parsing: text)
        if try TimeRangeExpression(parsing: "\(range)") != range { return "\(text) as \(range)" }
      } catch let error as MediaError where isRefusal(error, of: text) {}
      do {
        let rate = try FrameRate(parsing: text)
        if try FrameRate(parsing: "\(rate)") != rate { return "\(text) as \(rate)" }
      } catch let error as MediaError where isRefusal(error, of: text) {}
      do {
        let speed = try Speed(parsing: text)
        if try Speed(parsing: "\(speed)") != speed { return "\(text) as \(speed)" }
      } catch let error as MediaError where isRefusal(error, of: text) {}
      do {
        let number = try Rational(parsing: text)
        if try Rational(parsing: "\(number)") != number { return "\(text) as \(number)" }
      } catch let error as MediaError where isRefusal(error, of: text) {}
      return nil
    }
  }

  /// The grammar as regular expressions.
  ///
  /// A text that matches is never a syntax error, and a text that does not match is never accepted.
  @Test func `Parsers of times and speeds accept exactly their grammar`() throws {
    let number = #"[0-9]+(\.[0-9]+)?|[0-9]+/[0-9]+"#
    let clock = #"([0-9]+:[0-5][0-9]|0*[0-5]?[0-9]):[0-5][0-9](\.[0-9]+)?"#
    let units = ["h", "(m|min)", "s", "ms", "(us|µs|μs)", "ns"]
    let lengths = units.indices.map { last in
      units[..<last].map { "([0-9]+\($0))?" }.joined() + "(\(number))\(units[last])"
    }
    let seconds = #"((\#(number))|\#(lengths.joined(separator: "|"))|\#(clock))"#
    let time = try Regex("start|end|-?([0-9]+f|\(seconds))")
    let duration = try Regex(seconds)
    let rate = try Regex("-?(\(number))")
    let speed = try Regex(#"-?(\#(number)|[0-9]+(\.[0-9]+)?%)"#)
    forAll(6_000) { random in
      let text = random.text()
      func complaint(_ pattern: Regex<AnyRegexOutput>, _ code: MediaError.Code?) throws -> String? {
        let isMatch = try pattern.wholeMatch(in: text) != nil
        let isWrong = isMatch ? code == .syntax : code == nil
        return isWrong ? "\(text.debugDescription): \(isMatch), \(String(describing: code))" : nil
      }
      return try complaint(time, code { _ = try TimeExpression(parsing: text) })
        ?? complaint(duration, code { _ = try MediaTime(parsing: text) })
        ?? complaint(rate, code { _ = try FrameRate(parsing: text) })
        ?? complaint(speed, code { _ = try Speed(parsing: text) })
    }
  }

  private func isRefusal(_ error: MediaError, of text: String) -> Bool {
    let codes: [MediaError.Code] = [.syntax, .overflow, .notPositive, .emptyRange]
    return codes.contains(error.code) && error.description.utf8.first == UInt8(ascii: "\"")
      && !error.description.utf8.contains { $0 < 0x20 }
  }
}

private let pieces = [
  "0", "1", "2", "9", "59", "60", "75", "00", "1000", "1001", "9223372036854775807",
  "340282366920938463463374607431768211456",
  ".", "..", ":", "/", "+", "-", "%", "f", "s", "ms", "us", "µs", "μs", "ns", "min", "m", "h",
  "start", "end",
  " ", "\0", "\n", "e5", "x", "nan", "１", "\u{301}", "🎞️", "\u{202E}", ",",
]

private let models = [
  "1.25", "250ms", "1h30m", "1m2.5s", "40us", "1:02.5", "00:01:02.500", "120f", "end", "-2s",
  "1.2..1.5", "2..end",
  "0.5+1.25", "240", "59.94", "60000/1001", "0.125", "1/8", "12.5%", "120f+60f", "-120f..end",
]

extension SeededGenerator {
  /// A few pieces of the syntax, a valid text with one byte changed, or random characters.
  fileprivate mutating func text() -> String {
    switch below(8) {
    case 0...3: return (0..<(1 + below(5))).map { _ in pick(pieces) }.joined()
    case 4, 5:
      var scalars = Array(pick(models).unicodeScalars)
      let position = below(scalars.count)
      switch below(3) {
      case 0: scalars.remove(at: position)
      case 1: scalars.insert(scalars[below(scalars.count)], at: position)
      default: scalars[position] = Unicode.Scalar(UInt8(below(128)))
      }
      return scalars.reduce(into: "") { $0.unicodeScalars.append($1) }
    case 6:
      return (0..<below(8)).reduce(into: "") { text, _ in
        text.unicodeScalars.append(Unicode.Scalar(UInt32(below(0x11_0000))) ?? " ")
      }
    default: return String(repeating: pick(pieces), count: 1 + below(100))
    }
  }
}
