// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import OvercrankPlayback
import OvercrankRetiming
import TestSupport
import Testing

struct LoopTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Plays a loop, and compares the samples at which the loop restarts with the exact times.
  @Test(arguments: [Rational.one, Rational(3, over: 2), Rational(-1)])
  func `Audio of a loop is exact to the sample over 1000 repetitions`(_ rate: Rational) throws {
    let asset = try Movies.chirp(scratch, seconds: 10)
    let stage = try Stage(asset, hasAudio: true) { $0.algorithm = .varispeed }
    // 1/97 s is not a whole number of audio samples.
    let range = try TimeRange(start: MediaTime(seconds: 4), duration: MediaTime(1, over: 97))
    stage.player.seek(to: rate < .zero ? range.end : range.start)
    try stage.player.setLoop(range)
    stage.work()
    try stage.player.setRate(rate)
    let first = try #require(stage.sink).samples[0].count
    let period = range.duration / rate.magnitude
    let count = 1_000
    let length = try (period * Rational(Int64(count)) * 48_000).rounded(.towardPositiveInfinity)
    stage.play(for: Int64(length) * 1_000_000_000 / 48_000 + 50_000_000)
    let samples = try #require(stage.sink).samples
    // At each repetition, the first sample at or after the exact time is the first sample of the
    // range. A crossfade of 240 samples may follow.
    var worst = 0.0
    for number in 1...count {
      let exact = period * Rational(Int64(number)) * 48_000
      let start = try Int(exact.rounded(.towardPositiveInfinity))
      for offset in [start - 2, start + 250] {
        let elapsed = Rational(Int64(offset)) / 48_000
        let turns = try (elapsed / period).rounded(.towardNegativeInfinity)
        let inside = (elapsed - Rational(turns) * period) * rate.magnitude
        let time = rate < .zero ? range.end.seconds - inside : range.start.seconds + inside
        let error = Chirp.error(samples, at: first + offset, expected: time.doubleValue)
        worst = max(worst, abs(error))
      }
    }
    // A sample lasts 20.8 µs. At speed 1, a loop starts at the nearest whole sample.
    #expect(worst < 0.000_04, "off by \(worst) s")
    #expect(stage.player.ledger.due == 0)
  }

  @Test(arguments: [false, true]) func `Playing a loop shows and counts each frame in the loop`(
    _ isBackward: Bool
  ) throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset)
    // The loop of 0.1 s has frames 24 to 47.
    let range = try TimeRange(start: MediaTime(1, over: 10), duration: MediaTime(1, over: 10))
    stage.player.seek(to: isBackward ? range.end : range.start)
    try stage.player.setLoop(range)
    stage.work()
    try stage.player.setRate(isBackward ? -1 : 1)
    for refresh in 0..<300 {
      let time = Int64(refresh) * 16_666_667
      let exact = Rational(Int128(time), over: 1_000_000_000) * 240
      let passed = try exact.rounded(.towardNegativeInfinity)
      let frame = isBackward ? 47 - Int(passed % 24) : 24 + Int(passed % 24)
      #expect(stage.number(at: time) == frame, "refresh \(refresh)")
      let ledger = stage.player.ledger
      #expect(ledger.due == Int(passed) + 1 && ledger.isBalanced && ledger.late == 0)
      #expect(ledger.shown == refresh + 1)
    }
  }

  @Test func `Setting a loop moves the playhead into the loop`() throws {
    let asset = try Movies.painted(scratch)
    let stage = try Stage(asset)
    try stage.player.setLoop(
      TimeRange(start: MediaTime(seconds: 1), duration: MediaTime(1, over: 4)))
    stage.work()
    #expect(stage.player.currentTime.composition == .one)
    #expect(throws: MediaError.self) {
      try stage.player.setLoop(TimeRange(start: MediaTime(seconds: 1), end: MediaTime(seconds: 3)))
    }
  }
}
