// SPDX-License-Identifier: Apache-2.0

import OvercrankAssets
import OvercrankMediaCore
import OvercrankPlayback
import OvercrankRetiming
import TestSupport
import Testing

/// Audio across changes of the playback rate, read back from the sink sample by sample.
struct SpeedChangeTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A change of the playback rate, and the audio sample at which it takes effect.
  private struct Change {
    let sample: Int
    let rate: Rational
    /// The number of audio samples between the command and the change of the rate.
    let latency: Int
  }

  /// Plays at random rates, and returns the rate changes.
  private func changes(
    _ stage: Stage, count: Int, length: Double, seed: UInt64
  ) throws -> [Change] {
    var random = SeededGenerator(seed: seed)
    var changes: [Change] = []
    var position = 0.0
    for _ in 0..<count {
      let magnitude = Rational(
        .random(in: 1...32, using: &random), over: .random(in: 1...32, using: &random))
      // The direction is toward the middle of the movie, so that its ends are not reached.
      let isBackward = position > length / 2
      let rate = isBackward ? -magnitude : magnitude
      let nanoseconds = Int64.random(in: 1...60, using: &random) * 1_234_567
      try stage.player.setRate(rate)
      let written = try #require(stage.sink).samples[0].count
      let now = stage.clock.now.seconds - Rational(5)
      let played = try (now * 48_000).rounded(.towardNegativeInfinity)
      changes.append(
        Change(sample: written, rate: rate, latency: written - Int(played)))
      position += rate.doubleValue * Double(nanoseconds) / 1e9
      stage.play(for: nanoseconds)
    }
    return changes
  }

  /// Returns the source time of each sample after the first change.
  private func model(_ changes: [Change], start: Double, end: Int) -> [Double] {
    var times: [Double] = []
    var position = start
    for (index, change) in changes.enumerated() {
      let next = index + 1 < changes.count ? changes[index + 1].sample : end
      let step = change.rate.doubleValue / 48_000
      for number in 0..<max(0, next - change.sample) {
        times.append(position + Double(number) * step)
      }
      position += Double(max(0, next - change.sample)) * step
    }
    return times
  }

  @Test func `Audio is continuous over 200 random playback rate changes`() throws {
    let asset = try Movies.chirp(scratch, seconds: 60)
    let stage = try Stage(asset, hasAudio: true) { $0.algorithm = .varispeed }
    stage.player.seek(to: MediaTime(seconds: 30))
    stage.play(for: 50_000_000)
    let changes = try changes(stage, count: 200, length: 60, seed: 24)
    let sink = try #require(stage.sink)
    let samples = sink.samples
    let first = changes[0].sample
    let times = model(changes, start: 30, end: samples[0].count)
    #expect(times.count == samples[0].count - first)
    var (worst, lowest) = (0.0, 1.0)
    // The fade-in after the pause takes 5 ms.
    for (offset, time) in times.enumerated().dropFirst(240) {
      let error = Chirp.error(samples, at: first + offset, expected: time)
      worst = max(worst, abs(error))
      lowest = min(lowest, Chirp.level(samples, at: first + offset))
    }
    #expect(worst < 0.001, "the source time is off by \(worst) s")
    #expect(lowest > 0.95, "the level falls to \(lowest)")
    // The latency is at most the audio that is rendered ahead, plus one period of the audio device.
    let latencies = changes.map(\.latency)
    #expect((latencies.max() ?? .max) <= sink.renderAhead + sink.period)
    #expect(stage.player.audioError == nil)
  }

  @Test(arguments: [AudioTimePitchAlgorithm.spectral, .timeDomain, .lowQuality])
  func `Pitch-preserving audio has no gap at playback rate changes`(
    _ algorithm: AudioTimePitchAlgorithm
  ) throws {
    let asset = try Movies.chirp(scratch, seconds: 60)
    let stage = try Stage(asset, hasAudio: true) { $0.algorithm = algorithm }
    stage.player.seek(to: MediaTime(seconds: 30))
    stage.play(for: 50_000_000)
    let changes = try changes(stage, count: 40, length: 60, seed: 7)
    let samples = try #require(stage.sink).samples
    var lowest = 1.0
    for start in stride(from: changes[0].sample + 480, to: samples[0].count - 2_400, by: 480) {
      let energy = (start..<start + 2_400).reduce(0) {
        $0 + Double(samples[0][$1] * samples[0][$1] + samples[1][$1] * samples[1][$1])
      }
      lowest = min(lowest, (energy / 2_400).squareRoot() / Chirp.amplitude)
    }
    #expect(lowest > 0.3, "the level of 50 ms falls to \(lowest)")
  }

  @Test func `The lowQuality algorithm plays at its nearest supported rate`() throws {
    let asset = try Movies.chirp(scratch, seconds: 10)
    let stage = try Stage(asset, hasAudio: true)
    try stage.player.setRate(Rational(1, over: 8))
    stage.play(for: 100_000_000)
    #expect(stage.player.rate == Rational(1, over: 8))
    stage.player.algorithm = .lowQuality
    #expect(stage.player.rate == Rational(1, over: 2))
    try stage.player.setRate(Rational(-9, over: 5))
    #expect(stage.player.rate == -2)
    stage.player.algorithm = .timeDomain
    #expect(stage.player.rate == Rational(-9, over: 5))
  }

  @Test func `Muting and unmuting the player fades the audio`() throws {
    let asset = try Movies.chirp(scratch, seconds: 10)
    let stage = try Stage(asset, hasAudio: true)
    try stage.player.setRate(1)
    stage.play(for: 100_000_000)
    stage.player.isMuted = true
    let muted = try #require(stage.sink).samples[0].count
    stage.play(for: 100_000_000)
    stage.player.isMuted = false
    let heard = try #require(stage.sink).samples[0].count
    stage.play(for: 100_000_000)
    let samples = try #require(stage.sink).samples
    #expect(Chirp.level(samples, at: muted - 1) > 0.9)
    #expect((muted + 240..<heard).allSatisfy { Chirp.level(samples, at: $0) == 0 })
    #expect(Chirp.level(samples, at: heard + 240) > 0.9)
    // The source continued while the player was muted.
    #expect(
      abs(Chirp.error(samples, at: heard + 300, expected: Double(heard + 300 - 1_440) / 48_000))
        < 0.001)
  }

  @Test func `Playback starts exactly at a scheduled host time`() throws {
    let asset = try Movies.chirp(scratch, seconds: 10)
    let stage = try Stage(asset, hasAudio: true)
    let start = MediaTime(nanoseconds: Stage.start + 123_456_789)
    try stage.player.play(atHostTime: start)
    #expect(stage.player.state == .scheduled)
    stage.play(for: 300_000_000)
    #expect(stage.player.state == .playing)
    let samples = try #require(stage.sink).samples
    // There is only silence before sample 5926, which is the first one after 0.123456789 s.
    #expect((0..<5_926).allSatisfy { Chirp.level(samples, at: $0) == 0 })
    for index in 6_200..<10_000 {
      let expected = Double(index) / 48_000 - 0.123456789
      #expect(abs(Chirp.error(samples, at: index, expected: expected)) < 0.000_02)
    }
    // A start time in the past gives audio in phase too.
    let late = try Stage(asset, hasAudio: true)
    late.play(for: 100_000_000)
    try late.player.play(atHostTime: MediaTime(nanoseconds: Stage.start + 40_000_000), rate: 2)
    late.play(for: 100_000_000)
    #expect(late.player.currentTime.composition == Rational(32, over: 100))
  }
}
