// SPDX-License-Identifier: Apache-2.0

import Foundation
import OvercrankEditing
import OvercrankMediaCore
import TestSupport
import Testing

/// JSON of values that users store.
///
/// Decoding is exact and returns only valid values.
struct CodableTests {
  @Test func `Times and rates are encoded as fractions and decode exactly`() throws {
    func text(_ value: some Encodable) throws -> String {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
    let time = MediaTime(1001, over: 240_000)
    #expect(try text(time) == #""1001/240000""#)
    #expect(try throughJSON(time).timescale == 240_000)
    #expect(try text(FrameRate(60_000, over: 1001)) == #""60000/1001""#)
    #expect(try text(Speed(1, over: 8)) == #""1/8""#)
    #expect(
      try text(try TimeRange.of(1, 2, per: 4)) == #"{"end":"2/4","start":"1/4"}"#)
    var random = SeededGenerator(seed: 4)
    for _ in 0..<2_000 {
      let time = MediaTime(
        .random(in: .min ... .max, using: &random), over: .random(in: 1 ... .max, using: &random))
      let back = try throughJSON(time)
      #expect(back.value == time.value && back.timescale == time.timescale)
      let number = Rational(
        .random(in: -Int128.max ... .max, using: &random),
        over: .random(in: 1 ... .max, using: &random))
      #expect(try throughJSON(number) == number)
      if let speed = Speed(exactly: number) { #expect(try throughJSON(speed) == speed) }
      let rate = FrameRate(.random(in: 1...100_000, using: &random), over: 1001)
      #expect(try throughJSON(rate) == rate)
    }
    #expect(throws: EncodingError.self) { try throughJSON(Rational.invalid) }
  }

  @Test(
    arguments: [
      "1.5", "null", #""""#, #""1/""#, #""/2""#, #""1/0""#, #""1/-2""#, #""1/2/3""#, #""a/b""#,
      #""1 /2""#, #""340282366920938463463374607431768211456/1""#, "{}", "[1,2]",
    ])
  func `Text that is not a fraction fails to decode as a time`(text: String) {
    #expect(throws: DecodingError.self) { try decode(MediaTime.self, text) }
    #expect(throws: DecodingError.self) { try decode(Rational.self, text) }
    #expect(throws: DecodingError.self) { try decode(FrameRate.self, text) }
    #expect(throws: DecodingError.self) { try decode(Speed.self, text) }
  }

  @Test func `Time values out of range fail to decode`() {
    #expect(throws: DecodingError.self) { try decode(MediaTime.self, #""1/2147483648""#) }
    #expect(throws: DecodingError.self) { try decode(MediaTime.self, #""9223372036854775808/1""#) }
    #expect(throws: DecodingError.self) { try decode(FrameRate.self, #""0/1""#) }
    #expect(throws: DecodingError.self) { try decode(FrameRate.self, #""2147483648/1""#) }
    #expect(throws: DecodingError.self) { try decode(Speed.self, #""-1/8""#) }
    #expect(throws: DecodingError.self) {
      try decode(TimeRange.self, #"{"start":"2/1","end":"1/1"}"#)
    }
    #expect(throws: DecodingError.self) {
      try decode(MediaSource.self, #"{"path":"a","duration":"0/1","tracks":[]}"#)
    }
  }

  @Test func `An invalid composition fails to decode with a reason`() throws {
    let source = try MediaSource(path: "a.mov", duration: MediaTime(seconds: 2))
    var composition = Composition(source)
    try composition.setSpeed(Speed(1, over: 2), in: .of(1, 2))
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let good = String(decoding: try encoder.encode(composition), as: UTF8.self)
    #expect(try decode(Composition.self, good) == composition)
    for (old, new, code) in [
      (#""duration":"2/1""#, #""duration":"3/2""#, MediaError.Code.outsideSource),
      (#"{"end":"3/1","start":"1/1"}"#, #"{"end":"3/1","start":"2/1"}"#, .invalidSegments),
      (#"{"end":"3/1","start":"1/1"}"#, #"{"end":"1/1","start":"1/1"}"#, .emptyRange),
    ] {
      try #require(good.contains(old))
      let error = #expect(throws: DecodingError.self) {
        try decode(Composition.self, good.replacing(old, with: new))
      }
      guard case .dataCorrupted(let context)? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect((context.underlyingError as? MediaError)?.code == code)
    }
  }

  @Test(arguments: 0..<40 as Range<UInt64>)
  func `Damaged JSON decodes to a valid composition or fails`(seed: UInt64) throws {
    let source = try MediaSource(path: "a.mov", duration: MediaTime(seconds: 4))
    var composition = Composition(source)
    try composition.setSpeedRamp(
      SpeedRamp(from: .normal, to: Speed(1, over: 8), easing: .easeInOut), in: .of(1, 2))
    try composition.insertEmptyTimeRange(.of(1, 2, per: 2))
    try composition.freezeFrame(at: MediaTime(seconds: 3), for: MediaTime(1, over: 3))
    try composition.removeTimeRange(.of(5, 6, per: 4))
    let text = Array(try JSONEncoder().encode(composition))
    var random = SeededGenerator(seed: seed)
    var accepted = 0
    for _ in 0..<50 {
      var damaged = text
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let digits = damaged.indices.filter { (0x30...0x39).contains(damaged[$0]) }
        damaged[digits.randomElement(using: &random)!] = .random(in: 0x2D...0x39, using: &random)
      }
      guard let read = try? JSONDecoder().decode(Composition.self, from: Data(damaged)) else {
        continue
      }
      accepted += 1
      try read.validateSegments()
    }
    #expect(accepted < 50)
  }
}
