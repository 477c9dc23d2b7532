// SPDX-License-Identifier: Apache-2.0

import OvercrankMediaCore
import OvercrankRetiming
import TestSupport
import Testing

/// A speed, an algorithm and a number of channels to render audio with.
struct LengthCase: Sendable, CustomTestStringConvertible {
  var speed: Speed
  var algorithm: AudioTimePitchAlgorithm
  var channelCount: Int

  static let all: [LengthCase] = {
    var cases: [LengthCase] = []
    let fractions: [(Int64, Int64)] = [
      (1, 32), (1, 8), (1, 3), (1, 2), (4, 5), (1, 1), (1001, 1000), (3, 2), (2, 1), (8, 1),
      (32, 1),
    ]
    for (above, below) in fractions {
      guard let speed = try? Speed.of(above, below) else { continue }
      for algorithm in AudioTimePitchAlgorithm.allCases {
        for channelCount in [1, 2] {
          cases.append(
            LengthCase(speed: speed, algorithm: algorithm, channelCount: channelCount))
        }
      }
    }
    return cases
  }()

  var testDescription: String { "\(algorithm.rawValue) \(speed) \(channelCount)" }
}

struct AudioLengthTests {
  @Test("Retimed audio has the source length divided by the speed", arguments: LengthCase.all)
  func exactLength(entry: LengthCase) throws {
    let retimer = try AudioRetimer(
      algorithm: entry.algorithm, sampleRate: 48_000, channelCount: entry.channelCount,
      otherSpeeds: .snapped)
    for count in [1, 10, 100, 1000] as [Int64] {
      let audio = Audio.noise(length: count, channelCount: entry.channelCount)
      let mappings = [try TimeMapping.of(0, count, at: entry.speed)]
      let rendering = try retimer.render(mappings, of: audio)
      let exact = Rational(count) / entry.speed.fraction
      let expected = try Int64(exact.rounded(.halfAwayFromZero))
      #expect(rendering.samples.map(\.count).allSatisfy { $0 == expected })
      #expect(rendering.samples.count == entry.channelCount)
      #expect(rendering.report.samples == expected)
      #expect(rendering.report.lengthErrorSamples == 0)
      #expect(try retimer.sampleCount(mappings: mappings) == expected)
      #expect(rendering.samples.joined().allSatisfy { $0.isFinite && $0.magnitude < 8 })
    }
  }

  @Test(
    "Audio retiming supports all sample rates and many channels",
    arguments: [(8000, 1), (11_025, 3), (44_100, 2), (96_000, 2), (192_000, 1), (48_000, 12)])
  func formats(sampleRate: Int, channelCount: Int) throws {
    let audio = Audio.noise(length: 2000, channelCount: channelCount)
    for algorithm in AudioTimePitchAlgorithm.allCases {
      let retimer = try AudioRetimer(
        algorithm: algorithm, sampleRate: sampleRate, channelCount: channelCount,
        otherSpeeds: .snapped)
      for speed in [try Speed.of(1, 4), try .of(7, 2)] {
        let mapping = try TimeMapping.of(0, 700, at: speed, sampleRate: Int32(sampleRate))
        let rendering = try retimer.render([mapping], of: audio)
        #expect(rendering.samples.count == channelCount)
        #expect(rendering.report.samples == (speed == (try .of(1, 4)) ? 2800 : 200))
        #expect(rendering.report.lengthErrorSamples == 0)
      }
    }
  }

  @Test(
    "In random retimings audio at normal speed is unchanged",
    arguments: 0..<30 as Range<UInt64>)
  func randomPlans(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let algorithm = AudioTimePitchAlgorithm.allCases[Int(seed % 5)]
    let retimer = try AudioRetimer(
      algorithm: algorithm, sampleRate: 48_000, channelCount: 2, otherSpeeds: .snapped)
    let audio = Audio.noise(length: 40_000, channelCount: 2)
    var mappings: [TimeMapping] = []
    var end = MediaTime.zero
    for _ in 0..<6 {
      if Int.random(in: 0..<4, using: &random) == 0 {
        end = try MediaTime(end + MediaTime(.random(in: 1...400, using: &random), over: 11_000))
      }
      let fractions: [(Int64, Int64)] = [(1, 1), (1, 1), (1, 3), (2, 1), (5, 7), (12, 1)]
      let (above, below) = fractions.randomElement(using: &random) ?? (1, 1)
      // The starts and lengths are not whole numbers of samples.
      let start = MediaTime(.random(in: 0...45_000, using: &random), over: 90_000)
      let source = try TimeRange(
        start: start,
        duration: MediaTime(.random(in: 1...7200, using: &random), over: 90_000))
      let length = try MediaTime(
        source.duration / Speed.of(above, below).fraction)
      mappings.append(
        try TimeMapping(source: source, target: TimeRange(start: end, duration: length)))
      end = try MediaTime(end + length)
    }
    let duration = try MediaTime(end + MediaTime(1, over: 100))
    let rendering = try retimer.render(mappings, of: audio, duration: duration)
    func sample(_ time: Rational) throws -> Int {
      Int(try (time * Rational(48_000)).rounded(.halfAwayFromZero))
    }
    let total = try sample(duration.seconds)
    #expect(rendering.samples.map(\.count) == [total, total])
    #expect(rendering.report.samples == Int64(total))
    #expect(rendering.report.lengthErrorSamples == 0)
    #expect(rendering.samples.joined().allSatisfy { $0.isFinite && $0.magnitude < 8 })

    var last = 0
    for mapping in mappings {
      let first = try sample(mapping.target.start.seconds)
      let next = try sample(mapping.target.end.seconds)
      for channel in 0..<2 {
        #expect(rendering.samples[channel][last..<first].allSatisfy { $0 == 0 })
      }
      if try mapping.speed() == .normal, first < next {
        // The source sample that plays at this position, rounded to the nearest sample.
        let position = try sample(
          mapping.sourceSeconds(of: Rational(Int128(first), over: 48_000)))
        let expected = audio.samples(Int64(position), next - first)
        for channel in 0..<2 {
          #expect(rendering.samples[channel][first..<next].elementsEqual(expected[channel]))
        }
      } else if algorithm == .mute {
        #expect(rendering.samples[0][first..<next].allSatisfy { $0 == 0 })
      }
      last = next
    }
    for channel in 0..<2 { #expect(rendering.samples[channel][last...].allSatisfy { $0 == 0 }) }
  }

  @Test func `Audio retimed in two adjoining ranges equals one range`() throws {
    let audio = Audio.noise(length: 20_000)
    for algorithm in [AudioTimePitchAlgorithm.spectral, .timeDomain, .varispeed] {
      let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: 48_000, channelCount: 1)
      let speed = try Speed.of(1, 3)
      let whole = try TimeMapping.of(100, 3001, at: speed)
      let first = try TimeMapping.of(100, 1000, at: speed)
      let second = try TimeMapping.of(1100, 2001, at: speed, from: first.target.end)
      #expect(
        try retimer.render([whole], of: audio).samples
          == retimer.render([first, second], of: audio).samples)
    }
  }

  @Test func `The audio retimer reads its source once in small blocks`() throws {
    for (above, below) in [(1, 32), (32, 1), (970, 31)] as [(Int64, Int64)] {
      for algorithm in [AudioTimePitchAlgorithm.spectral, .timeDomain, .varispeed] {
        let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: 48_000, channelCount: 1)
        let speed = try Speed.of(above, below)
        var expected: Int64?
        var largest = 0
        _ = try retimer.render(
          mappings: [TimeMapping.of(50_000, above > 32 ? 97_000 : 6400, at: speed)],
          read: { start, count in
            // The audio source is read once, forward and without gaps.
            #expect(expected == nil || expected == start)
            #expect(start > 0)
            expected = start + Int64(count)
            largest = max(largest, count)
            return [[Float]](repeating: [Float](repeating: 0, count: count), count: 1)
          },
          write: { largest = max(largest, $0[0].count) })
        #expect(largest <= 16_384)
        #expect(expected ?? .max < 400_000)
      }
    }
  }
}
