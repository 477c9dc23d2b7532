// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

struct AudioRetimerTests {
  private let audio = Audio.noise(length: 48_000)

  /// Four time mappings whose ranges are not adjacent, so that each mapping becomes a separate
  /// piece of audio.
  private func separateMappings() throws -> [TimeMapping] {
    var end = MediaTime.zero
    return try
      ([(30_000, 1, 2), (1000, 3, 2), (20_000, 1, 1), (8000, 4, 5)] as [(Int64, Int64, Int64)])
      .map { start, above, below in
        let mapping = try TimeMapping.of(start, 3000, at: .of(above, below), from: end)
        end = mapping.target.end
        return mapping
      }
  }

  @Test(
    "Several render threads give the same audio samples as one",
    arguments: [.spectral, .timeDomain, .varispeed, .lowQuality] as [AudioTimePitchAlgorithm])
  func parallel(_ algorithm: AudioTimePitchAlgorithm) throws {
    let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: 48_000, channelCount: 2)
    let noise = Audio.noise(length: 48_000, channelCount: 2)
    let mappings = try separateMappings()
    let plain = try retimer.render(mappings, of: noise)
    let caller = pthread_self()
    for parallelism in [2, 5] {
      var samples: [[Float]] = [[], []]
      let report = try retimer.render(
        mappings: mappings, parallelism: parallelism,
        read: { start, count in
          #expect(pthread_equal(pthread_self(), caller) != 0)
          return noise.samples(start, count)
        },
        write: { for channel in $0.indices { samples[channel] += $0[channel] } })
      #expect(samples == plain.samples)
      #expect(report == plain.report)
    }
  }

  @Test func `A read error or cancellation stops all audio render threads`() throws {
    struct Broken: Error {}
    let retimer = try AudioRetimer(algorithm: .timeDomain, sampleRate: 48_000, channelCount: 1)
    let mappings = try separateMappings()
    var blocks = 0
    #expect(
      code {
        _ = try retimer.render(
          mappings: mappings, parallelism: 3, isCancelled: { blocks > 1 },
          read: audio.samples, write: { _ in blocks += 1 })
      } == .cancelled)
    var reads = 0
    #expect(throws: Broken.self) {
      try retimer.render(
        mappings: mappings, parallelism: 3,
        read: { start, count in
          reads += 1
          if reads > 2 { throw Broken() }
          return audio.samples(start, count)
        }, write: { _ in })
    }
  }

  @Test func `Time pitch algorithms have stable raw values`() {
    #expect(
      AudioTimePitchAlgorithm.allCases.map(\.rawValue) == [
        "spectral", "time-domain", "varispeed", "low-quality", "mute",
      ])
  }

  @Test(
    "Refuses audio with an extreme sample rate or channel count",
    arguments: [(7999, 1), (192_001, 1), (48_000, 0), (48_000, 65), (-1, -1)])
  func formats(sampleRate: Int, channelCount: Int) {
    #expect(
      code {
        _ = try AudioRetimer(
          algorithm: .spectral, sampleRate: sampleRate, channelCount: channelCount)
      } == .unsupportedFormat)
  }

  @Test func `Audio at a speed outside 1/32 to 32 is refused unless muted`() throws {
    for (above, below) in [(1, 33), (33, 1), (3201, 100)] as [(Int64, Int64)] {
      let mapping = try TimeMapping.of(0, 96_000, at: .of(above, below))
      for algorithm in [AudioTimePitchAlgorithm.spectral, .timeDomain, .varispeed] {
        let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: 48_000, channelCount: 1)
        let error = #expect(throws: MediaError.self) {
          try retimer.render([mapping], of: audio)
        }
        #expect(error?.code == .speedOutOfRange)
        #expect(error?.description.contains("from 1/32 to 32/1") == true)
      }
      let muted = try AudioRetimer(algorithm: .mute, sampleRate: 48_000, channelCount: 1)
      #expect(try muted.render([mapping], of: audio).samples[0].allSatisfy { $0 == 0 })
    }
  }

  @Test func `The audio retimer refuses overlapping time mappings`() throws {
    let retimer = try AudioRetimer(algorithm: .varispeed, sampleRate: 48_000, channelCount: 1)
    let first = try TimeMapping(source: .of(0, 1), target: .of(0, 2))
    let overlapping = try TimeMapping(source: .of(0, 1), target: .of(1, 3))
    let early = try TimeMapping(source: .of(0, 1), target: .of(-1, 3))
    func render(_ mappings: [TimeMapping], _ duration: MediaTime?) throws {
      _ = try retimer.render(
        mappings: mappings, duration: duration,
        read: { _, _ in
          Issue.record("nothing should be read")
          return []
        }, write: { _ in Issue.record("nothing should be written") })
    }
    #expect(code { try render([first, overlapping], nil) } == .invalidMappings)
    #expect(code { try render([early], nil) } == .invalidMappings)
    #expect(code { try render([first], MediaTime(seconds: 1)) } == .invalidMappings)
    let far = try TimeMapping(
      source: .of(0, 1), target: .of(.max - 1, .max))
    #expect(code { try render([far], nil) } == .notExact)
    try render([], nil)
  }

  @Test func `The audio retimer refuses a read that gives too few samples`()
    throws
  {
    struct Stop: Error {}
    let retimer = try AudioRetimer(algorithm: .spectral, sampleRate: 48_000, channelCount: 2)
    let mapping = try TimeMapping.of(0, 9000, at: .of(1, 2))
    for answer in [[[]], [[], []], [[0], []]] as [[[Float]]] {
      #expect(
        code {
          _ = try retimer.render(
            mappings: [mapping], read: { _, _ in answer }, write: { _ in })
        } == .invalidSamples)
    }
    #expect(throws: Stop.self) {
      try retimer.render(mappings: [mapping], read: { _, _ in throw Stop() }, write: { _ in })
    }
  }

  @Test func `Cancelling an audio retimer stops it within a block`() throws {
    let retimer = try AudioRetimer(algorithm: .varispeed, sampleRate: 48_000, channelCount: 1)
    var written = 0
    let mapping = try TimeMapping.of(0, 48_000, at: .of(1, 8))
    #expect(
      code {
        _ = try retimer.render(
          mappings: [mapping], isCancelled: { written >= 10_000 }, read: audio.samples,
          write: { written += $0[0].count })
      } == .cancelled)
    #expect((10_000..<15_000).contains(written))
  }
}
