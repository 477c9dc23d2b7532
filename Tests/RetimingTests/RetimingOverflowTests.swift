// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// Extreme durations, sample rates and sample positions.
///
/// Counts of samples and frames fit in an integer, or a typed error is thrown.
struct RetimingOverflowTests {
  @Test(arguments: 0..<60 as Range<UInt64>)
  func `An extreme audio duration gives a sample count or throws`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let retimer = try AudioRetimer(
      algorithm: AudioTimePitchAlgorithm.allCases[
        Int(seed % UInt64(AudioTimePitchAlgorithm.allCases.count))],
      sampleRate: 48_000, channelCount: 2)
    for _ in 0..<100 {
      let times = (0..<4).map { _ in random.extremeTime() }.sorted()
      do throws(MediaError) {
        let mapping = try TimeMapping(
          source: TimeRange(start: times[0], end: times[1]),
          target: TimeRange(start: times[2], end: times[3]))
        let duration = random.next() % 2 == 0 ? nil : random.extremeTime()
        let count = try retimer.sampleCount(mappings: [mapping], duration: duration)
        #expect(count >= 0)
      } catch { #expect(Self.expected.contains(error.code), "\(error)") }
    }
  }

  @Test(arguments: 0..<60 as Range<UInt64>)
  func `An extreme duration gives an output frame count or throws`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<200 {
      let (duration, tick) = (random.extremeTime().seconds, random.extremeTime().seconds)
      do throws(MediaError) {
        let rate = try FrameRate(frameDuration: random.extremeTime())
        let grid = try OutputFrameGrid(duration: duration, rate: rate, sourceTick: tick)
        #expect(grid.count >= 1)
        for slot in [0, grid.count - 1, .max] as [Int64] { #expect(grid.seconds(of: slot).isValid) }
      } catch { #expect(Self.expected.contains(error.code), "\(error)") }
    }
  }

  @Test(arguments: AudioTimePitchAlgorithm.allCases.filter { $0 != .mute })
  func `Audio at extreme sample positions throws an error`(
    algorithm: AudioTimePitchAlgorithm
  ) throws {
    let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: 48_000, channelCount: 1)
    let start = Int64.max - 3_000
    for slower in [1, 2] as [Int64] {
      let mapping = try TimeMapping(
        source: TimeRange(
          start: MediaTime(start, over: 48_000), end: MediaTime(Int64.max, over: 48_000)),
        target: TimeRange(
          start: .zero, duration: MediaTime((Int64.max - start) * slower, over: 48_000)))
      do {
        _ = try retimer.render(
          mappings: [mapping], read: { _, count in [[Float](repeating: 0, count: count)] },
          write: { _ in })
        Issue.record("the audio was rendered")
      } catch { #expect((error as? MediaError)?.code == .notExact, "\(error)") }
    }
  }

  private static let expected: Set<MediaError.Code> = [
    .overflow, .notExact, .notPositive, .emptyRange, .invalidMappings, .speedOutOfRange,
  ]
}
