// SPDX-License-Identifier: Apache-2.0

import Glibc
import OvercrankMediaCore
import TestSupport
import Testing

@testable import OvercrankRetiming

/// Audio along speed ramps.
///
/// Each sample is at the source position that the exact curve gives.
struct RampTests {
  /// A ramp over a second and a half of the source: the whole ramp, or only its middle part.
  private func ramp(
    _ from: Speed, _ to: Speed, _ easing: SpeedRamp.Easing, isPart: Bool
  ) throws -> PlaybackMapping {
    let ramp = SpeedRamp(from: from, to: to, easing: easing)
    let source = try TimeRange.of(12_345, 84_345, per: 48_000)
    let length = try ramp.targetDuration(of: MediaTime(source.duration))
    let whole = try PlaybackMapping(
      ramp, source: source, target: TimeRange(start: .zero, duration: length))
    guard isPart else { return whole }
    let part = try whole.split(at: MediaTime(1, over: 3)).1
    return try part.split(at: MediaTime(2, over: 3)).0
      .filling(TimeRange.of(0, 16_000, per: 48_000))
  }

  private static let speeds: [(Int64, Int64)] = [(1, 1), (1, 8), (2, 1), (1, 32), (7, 3)]

  @Test(arguments: SpeedRamp.Easing.allCases, [false, true])
  func `The speed map of a ramp matches the curve of the ramp`(
    easing: SpeedRamp.Easing, isPart: Bool
  ) throws {
    for (position, (above, below)) in Self.speeds.enumerated() {
      let other = Self.speeds[(position + 1) % Self.speeds.count]
      let mapping = try ramp(
        .of(above, below), .of(other.0, other.1), easing, isPart: isPart)
      let plan = try AudioPlan(
        [AudioSegment(mapping)], duration: nil, sampleRate: 48_000, algorithm: .spectral,
        otherSpeeds: .refused)
      let piece = try #require(plan.pieces.first)
      #expect(plan.pieces.count == 1)
      let map = try SpeedMap(piece, origin: 10_000)
      for sample in stride(from: 0, to: piece.samples.upperBound, by: 97) {
        let time = Rational(sample) / Rational(48_000)
        let exact = try (mapping.sourceSeconds(of: time) * Rational(48_000) - Rational(10_000))
          .doubleValue
        let found = map.source(at: Double(sample))
        #expect((found - exact).magnitude < 1e-6, "\(sample): \(found), not \(exact)")
        let back = map.output(at: found)
        #expect((back - Double(sample)).magnitude < 1e-4, "\(sample) came back as \(back)")
        let speed = try mapping.speed(at: time).doubleValue
        #expect((map.speed(atOutput: Double(sample)) / speed - 1).magnitude < 1e-6)
        #expect((map.speed(at: found) / speed - 1).magnitude < 1e-4)
      }
      let ends = [above, other.0].enumerated()
        .map { Double($1) / Double($0 == 0 ? below : other.1) }
      if !isPart {
        #expect((map.speeds.lowerBound / (ends.min() ?? 0) - 1).magnitude < 1e-9)
        #expect((map.speeds.upperBound / (ends.max() ?? 0) - 1).magnitude < 1e-9)
      }
    }
  }

  @Test(arguments: SpeedRamp.Easing.allCases, [440.0, 3_001])
  func `Varispeed audio follows the exact curve of a speed ramp`(
    easing: SpeedRamp.Easing, frequency: Double
  ) throws {
    // A constant speed continues into the ramp, and another constant speed after the ramp starts
    // between two samples.
    let first = try TimeMapping.of(345, 12_000, at: .of(1))
    var mappings = [PlaybackMapping(first)]
    let ramp = SpeedRamp(from: try .of(1), to: try .of(1, 5), easing: easing)
    let source = try TimeRange.of(12_345, 36_346, per: 48_000)
    let length = try ramp.targetDuration(of: MediaTime(source.duration))
    mappings.append(
      try PlaybackMapping(
        ramp, source: source, target: TimeRange(start: first.target.end, duration: length)))
    let last = try TimeMapping.of(
      36_346, 4_000, at: .of(1, 5), from: MediaTime(first.target.end + length))
    mappings.append(PlaybackMapping(last))
    let retimer = try AudioRetimer(algorithm: .varispeed, sampleRate: 48_000, channelCount: 1)
    let audio = Audio.sine(frequency, length: 100_000)
    var samples: [Float] = []
    let report = try retimer.render(
      mappings: mappings, read: audio.samples, write: { samples += $0[0] })
    #expect(report.lengthErrorSamples == 0 && Int64(samples.count) == report.samples)
    var worst = 0.0
    for (index, sample) in samples.enumerated() {
      let time = Rational(Int64(index)) / Rational(48_000)
      let mapping = mappings.last { $0.target.start.seconds <= time } ?? mappings[0]
      let position = try mapping.sourceSeconds(of: time).doubleValue
      worst = max(worst, (Double(sample) - 0.5 * sin(2 * .pi * frequency * position)).magnitude)
    }
    Measured.note("varispeed ramp", "\(easing), \(frequency) Hz: worst error \(worst)")
    #expect(worst < 2e-5)
  }

  @Test(arguments: [.spectral, .timeDomain, .varispeed] as [AudioTimePitchAlgorithm])
  func `Audio before and after speed ramps equals the source`(
    algorithm: AudioTimePitchAlgorithm
  ) throws {
    let first = try TimeMapping.of(1_000, 9_600, at: .of(1))
    var mappings = [PlaybackMapping(first)]
    var end = first.target.end
    let down = SpeedRamp(from: try .of(1), to: try .of(1, 4))
    for (number, ramp) in [down, down.reversed].enumerated() {
      let start = 10_600 + Int64(number) * 4_800
      let source = try TimeRange.of(start, start + 4_800, per: 48_000)
      let target = try TimeRange(
        start: end, duration: ramp.targetDuration(of: MediaTime(source.duration)))
      mappings.append(try PlaybackMapping(ramp, source: source, target: target))
      end = target.end
    }
    // The last range comes after two ramps of 0.16 s.
    mappings.append(PlaybackMapping(try TimeMapping.of(20_200, 9_600, at: .of(1), from: end)))
    let retimer = try AudioRetimer(algorithm: algorithm, sampleRate: 48_000, channelCount: 1)
    let audio = Audio.noise(length: 40_000)
    var samples: [Float] = []
    _ = try retimer.render(mappings: mappings, read: audio.samples, write: { samples += $0[0] })
    try #require(samples.count == 9_600 + 2 * 7_680 + 9_600)
    #expect(samples[..<9_600].elementsEqual(audio.samples(1_000, 9_600)[0]))
    #expect(samples[(9_600 + 2 * 7_680)...].elementsEqual(audio.samples(20_200, 9_600)[0]))
  }

  @Test func `The audio retimer refuses reversal and ramps to 1/33 speed`() throws {
    let retimer = try AudioRetimer(algorithm: .varispeed, sampleRate: 48_000, channelCount: 1)
    let line = try TimeMapping.of(0, 4_800, at: .of(1))
    var error = #expect(throws: MediaError.self) {
      try retimer.sampleCount(mappings: [PlaybackMapping(reversing: line)])
    }
    #expect(error?.code == .invalidMappings)
    let steep = SpeedRamp(from: try .of(1), to: try .of(1, 33))
    let length = try steep.targetDuration(of: MediaTime(line.source.duration))
    error = #expect(throws: MediaError.self) {
      try retimer.sampleCount(
        mappings: [
          PlaybackMapping(steep, source: line.source, target: TimeRange(duration: length))
        ])
    }
    #expect(error?.code == .speedOutOfRange)
    let held = try PlaybackMapping(holding: .zero, target: line.target)
    var samples: [Float] = []
    _ = try retimer.render(
      mappings: [held], read: { _, count in [[Float](repeating: 1, count: count)] },
      write: { samples += $0[0] })
    #expect(samples == [Float](repeating: 0, count: 4_800))
  }
}
